"""kubectl's jsonpath: a parser and an evaluator. Upstream: ``client-go/util/jsonpath``."""
