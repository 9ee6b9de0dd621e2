"""The timeline as a Chrome trace, for chrome://tracing and Perfetto.

Processes are nodes, threads are pods, slices are the states of pods; workloads are processes with
counters of their availability and an instant for each step of theirs. Times are microseconds since
the beginning of the timeline. The format is described in Google's "Trace Event Format".
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from kubepy.api.clock import format_exact_time
from kubepy.api.meta import Object
from kubepy.insight import Course, Step, Timeline
from kubepy.insight.availability import judge
from kubepy.insight.picture import NODES, PODS, Bar, TopControllers, all_bars


def render_trace(timeline: Timeline) -> str:
    """Return the JSON of a trace, one event a line."""
    trace = Trace(timeline)
    events = ",\n".join(
        json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in trace.events()
    )
    about = {"since": format_exact_time(timeline.since), "until": format_exact_time(timeline.until)}
    return (
        f'{{"displayTimeUnit":"ms","otherData":{json.dumps(about)},"traceEvents":[\n{events}\n]}}\n'
    )


class Trace:
    """The events of one trace."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._owners = TopControllers(timeline)
        self._bars = all_bars(timeline, self._owners)
        nodes = {bar.node for bar in self._bars} | {
            step.key.name for step in timeline.steps if step.key.resource == NODES
        }
        self._nodes = {
            name: number
            for number, name in enumerate(sorted(nodes, key=lambda name: (not name, name)), 1)
        }
        first = len(self._nodes) + 1
        self._workloads = {
            course.key: number for number, course in enumerate(sorted(timeline.courses), first)
        }
        self._others = first + len(self._workloads)

    def events(self) -> Iterable[Object]:
        """Yield all events: names of processes first."""
        for name, number in self._nodes.items():
            yield metadata("process_name", number, f"node {name}" if name else "no node")
            yield {
                "ph": "M",
                "name": "process_sort_index",
                "pid": number,
                "tid": 0,
                "args": {"sort_index": number},
            }

        for workload, number in self._workloads.items():
            yield metadata(
                "process_name",
                number,
                f"{workload.resource}/{workload.name} in {workload.namespace}",
            )

        threads = {bar.key: number for number, bar in enumerate(self._bars, 1)}
        for bar in self._bars:
            process = self._nodes[bar.node]
            yield metadata(
                "thread_name", process, f"{bar.key.namespace}/{bar.key.name}", threads[bar.key]
            )
            yield from self._slices(bar, process, threads[bar.key])

        for course in sorted(self._timeline.courses):
            yield from self._counters(course)
        for step in self._timeline.steps:
            if step.key.resource != PODS:
                yield self._instant(step)

    def _slices(self, bar: Bar, process: int, thread: int) -> Iterable[Object]:
        """Yield a slice for each state of a pod, and one around them."""
        place = {"ph": "X", "pid": process, "tid": thread}
        about = {
            "revision": bar.revision,
            "workload": f"{bar.workload.resource}/{bar.workload.name}",
        }
        if bar.successor:
            about["successor"] = bar.successor.key.name
        start = self._time(bar.start)
        end = self._time(bar.end)
        yield {
            **place,
            "name": bar.key.name,
            "cat": "pod",
            "ts": start,
            "dur": end - start,
            "args": about,
        }
        for first, last, state in bar.spans():
            start = self._time(first)
            end = self._time(last)
            reason = self._timeline.steps[first].reason if first >= 0 else ""
            yield {
                **place,
                "name": state,
                "cat": "state",
                "ts": start,
                "dur": end - start,
                "args": {"reason": reason},
            }

    def _counters(self, course: Course) -> Iterable[Object]:
        """Yield the numbers of a workload each time they change."""
        for step, numbers, _, required, *_ in judge(course):
            counters = {
                "available": numbers.available,
                "unavailable": numbers.unavailable,
                "surge": numbers.surge,
                **({"required": required} if required is not None else {}),
            }
            yield {
                "ph": "C",
                "name": "pods",
                "pid": self._workloads[course.key],
                "tid": 0,
                "ts": self._time(step - 1),
                "args": counters,
            }

    def _instant(self, step: Step) -> Object:
        """Return the event of a step that is no pod's."""
        if step.key.resource == NODES:
            process = self._nodes[step.key.name]
        else:
            process = self._workloads.get(self._owners.top(step), self._others)
        return {
            "ph": "i",
            "s": "p",
            "name": f"{step.action} {step.key.resource}/{step.key.name}",
            "cat": "step",
            "pid": process,
            "tid": 0,
            "ts": self._moment(step),
            "args": {"reason": step.reason},
        }

    def _moment(self, step: Step) -> int:
        """Return the microseconds from the beginning to a step."""
        return round((step.at - self._timeline.since).total_seconds() * 1_000_000)

    def _time(self, number: int) -> int:
        """Return the microseconds from the beginning to the step of that number, 0 or the end
        outside of the steps."""
        if number < 0:
            return 0
        if number < len(self._timeline.steps):
            return self._moment(self._timeline.steps[number])
        return round((self._timeline.until - self._timeline.since).total_seconds() * 1_000_000)


def metadata(name: str, process: int, text: str, thread: int = 0) -> Object:
    """Return an event that names a process or a thread."""
    return {"ph": "M", "name": name, "pid": process, "tid": thread, "args": {"name": text}}
