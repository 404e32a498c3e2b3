// Decisions on their way to the server. They are kept in the browser until the server says that they are on disk, and
// sent again after a lost connection or a reload. Each has a key of its own, so the server keeps it once.

import { Refused, persistently, post } from "./api.js";

const WAITING = "longtail.waiting.";
const REFUSED = "longtail.refused.";

export class Outbox {
  // `changed` hears how many messages wait, and whether the server is out of reach; `refused` why one was refused.
  constructor(changed, refused) {
    this.changed = changed;
    this.refused = refused;
    this.memory = new Map(); // where the browser keeps nothing
    this.number = 0;
    this.sending = false;
  }

  add(path, content) {
    const name = `${WAITING}${String(Date.now()).padStart(15, "0")}.${String(this.number++).padStart(6, "0")}.${content.key}`;
    const message = JSON.stringify({ path, content });
    try {
      localStorage.setItem(name, message);
    } catch {
      this.memory.set(name, message);
    }
    this.flush();
  }

  names() {
    const stored = [];
    try {
      for (let i = 0; i < localStorage.length; i++) stored.push(localStorage.key(i));
    } catch {
      // nothing is kept
    }
    return [...stored.filter((name) => name.startsWith(WAITING)), ...this.memory.keys()].sort();
  }

  // The texts that decisions wait for.
  texts() {
    return this.names().map((name) => this.read(name)?.content.text).filter((text) => text !== undefined);
  }

  get length() {
    return this.names().length;
  }

  read(name) {
    const message = this.memory.get(name) ?? localStorage.getItem(name);
    return message === null ? null : JSON.parse(message);
  }

  remove(name) {
    if (!this.memory.delete(name)) localStorage.removeItem(name);
  }

  async flush() {
    if (this.sending) return;
    this.sending = true;
    try {
      for (let [name] = this.names(); name !== undefined; [name] = this.names()) {
        const message = this.read(name);
        if (message !== null) await this.send(name, message);
      }
      this.changed(0, false);
    } finally {
      this.sending = false;
    }
  }

  async send(name, { path, content }) {
    try {
      await persistently(() => post(path, content), () => this.changed(this.length, true));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      try {
        localStorage.setItem(REFUSED + name.slice(WAITING.length), JSON.stringify({ path, content, why: error.message }));
      } catch {
        // nothing is kept
      }
      this.refused(error.message);
    }
    this.remove(name);
  }
}

// A key that no other message has; browsers make no UUIDs for pages that come without encryption.
export function newKey() {
  return crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random().toString(36).slice(2)}`;
}
