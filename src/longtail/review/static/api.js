// Requests to the server that the page came from. What cannot be sent is told apart from what the server refuses.

import { keep, kept } from "./words.js";

// The server has answered and refuses: trying again would not help.
export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// No answer, or one that says to come back later.
export class Unreachable extends Error {}

const LATER = new Set([408, 425, 429, 500, 502, 503, 504]);
let askToken = async () => "";

export function whenATokenIsNeeded(ask) {
  askToken = ask;
}

async function send(method, path, body, signal, type) {
  const headers = {};
  const token = kept("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = type;
  let answer;
  try {
    answer = await fetch(path, { method, headers, body, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable(error.message);
  }
  if (answer.status === 401) {
    keep("token", await askToken());
    return send(method, path, body, signal, type);
  }
  let content;
  try {
    content = await answer.json();
  } catch (error) {
    throw new Unreachable(error.message);
  }
  if (LATER.has(answer.status)) throw new Unreachable(content.detail);
  if (!answer.ok) throw new Refused(answer.status, content.detail);
  return content;
}

export function get(path, signal) {
  return send("GET", path, undefined, signal);
}

export function post(path, content, signal) {
  return send("POST", path, JSON.stringify(content), signal, "application/json");
}

export function upload(path, file) {
  return send("POST", path, file, undefined, "application/octet-stream");
}

// Tries until the server can be reached; `say` hears of each failure.
export async function persistently(request, say) {
  for (let pause = 500; ; pause = Math.min(2 * pause, 8000)) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      say(error);
    }
    await soon(pause);
  }
}

// Waits, but not longer than until the connection is back.
export function soon(milliseconds) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    addEventListener("online", end);
  });
}
