// Commands in a link: #cmd=…&cmd=…, each URL-encoded; a command may have several lines.

export function commandsOf(hash) {
  return hash
    .replace(/^#/, "")
    .split("&")
    .filter((part) => part.startsWith("cmd="))
    .map((part) => decoded(part.slice(4).replaceAll("+", " ")));
}

export function hashOf(commands) {
  return commands.length ? `#${commands.map((command) => `cmd=${encodeURIComponent(command)}`).join("&")}` : "";
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a lone per cent sign
  }
}
