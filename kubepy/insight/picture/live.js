/* The live page: asks its server for the timeline, with a token from the link or from the form. */
(() => {
  const {show, $} = timelinePage, SILENCE = 15000, AGAIN = 500;
  let token = remembered(), shown = "", stop = null;

  function remembered(value) {  // for this tab; a browser may forbid it
    try {
      if (value !== undefined) sessionStorage.setItem("token", value);
      return sessionStorage.getItem("token") || "";
    } catch {
      return value || "";
    }
  }

  function takeLink() {  // the token must not stay in the address
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (!given) return false;
    token = given;
    remembered(given);
    history.replaceState(null, "", location.pathname + location.search);
    return true;
  }

  function say(text) {
    if ($("message").textContent !== text) $("message").textContent = text;
    $("message").hidden = !text;
  }

  function ask(text) {
    say(text);
    $("login").hidden = false;
    $("token").focus();
  }

  function take(line) {
    if (!line || line === shown) return;
    const hadFocus = document.activeElement && document.activeElement.id === "picture";
    const timeline = JSON.parse(line);
    shown = line;
    $("content").innerHTML = timeline.content;  // every text in it was escaped by the server
    show(timeline.data);
    if (hadFocus) $("picture").focus();
  }

  async function read(signal, heard) {
    const since = new URLSearchParams(location.search).get("since");
    const response = await fetch("/timeline?watch=1" + (since ? "&since=" + encodeURIComponent(since) : ""),
                                 {headers: {Authorization: "Bearer " + token}, cache: "no-store", signal});
    if (!response.ok) {
      const status = await response.json().catch(() => ({}));
      return {status: response.status, message: status.message || response.statusText};
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return {status: 200};
      heard();
      say("");
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      take(lines.filter(Boolean).pop());
    }
  }

  async function follow() {
    if (stop) stop();
    let ended = false;
    stop = () => { ended = true; };
    $("login").hidden = true;
    while (!ended) {
      const control = new AbortController();
      let timer = 0;
      const heard = () => {
        clearTimeout(timer);
        timer = setTimeout(() => control.abort(), SILENCE);
      };
      stop = () => {
        ended = true;
        control.abort();
      };
      heard();
      const outcome = await read(control.signal, heard).catch(() => ({status: 0}));
      clearTimeout(timer);
      if (ended) return;
      if (outcome.status === 401) return ask("The server does not accept this token.");
      if (outcome.status === 403) return ask(outcome.message);
      if (outcome.status >= 400 && outcome.status < 500) return say(outcome.message);  // another token would not help
      say(outcome.message || "The connection is lost. Trying again …");
      await new Promise(done => setTimeout(done, AGAIN));
    }
  }

  $("login").onsubmit = event => {
    event.preventDefault();
    token = $("token").value.trim();
    $("token").value = "";
    remembered(token);
    follow();
  };
  addEventListener("hashchange", () => { if (takeLink()) follow(); });
  takeLink();
  if (token) follow(); else ask("This page needs a token: kubepy serve prints a link with it on a terminal, and the kubeconfig has it.");
})();
