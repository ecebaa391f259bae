// One JSON object a line over the socket that codeloop passed down: stdout and stderr stay free for extensions' noise.

import fs from "node:fs"
import net from "node:net"

const LINE_BYTES = 50_000_000
const NEWLINE = 10

/** Speaks with codeloop: `send`, `request` (awaits the answer), and `receive(message)` for every other message. */
export class Channel {
  #write
  #pending = new Map()
  #last = 0

  constructor(receive, ended) {
    const lines = splitLines((line) => {
      const message = JSON.parse(line)
      const waiting = message.type === "result" || message.type === "error" ? this.#pending.get(message.id) : undefined
      if (!waiting) return receive(message)
      this.#pending.delete(message.id)
      if (message.type === "result") waiting.resolve(message.value)
      else waiting.reject(failureOf(message))
    })
    this.#write = open(Number(process.env.CODELOOP_HOST_FD), lines, ended)
    delete process.env.CODELOOP_HOST_FD
  }

  /** Write one message; an answer that is too long for a line becomes an error that says so. Throws for others. */
  send(message) {
    let line = JSON.stringify(message)
    // A character has at most three bytes, so only lines that may be too long are measured.
    const size = line.length * 3 < LINE_BYTES ? 0 : Buffer.byteLength(line)
    if (size > LINE_BYTES) {
      const text = `This is ${size} bytes; a message has at most ${LINE_BYTES}. Give less, or write it to a file.`
      if (message.type !== "result" && message.type !== "error") throw new Error(text)
      line = JSON.stringify({ type: "error", id: message.id, kind: "invalid", message: text })
    }
    this.#write(line + "\n")
  }

  /** Send a message that codeloop answers. Ids of this side are negative, so that no two can be mixed up. */
  request(message) {
    const id = --this.#last
    return new Promise((resolve, reject) => {
      this.send({ ...message, id })
      this.#pending.set(id, { resolve, reject })
    })
  }
}

function failureOf({ message, data }) {
  const failure = new Error(message)
  failure.data = data
  return failure
}

function splitLines(take) {
  let parts = []
  return (chunk) => {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      parts.push(chunk.subarray(from, at))
      take(parts.length === 1 ? parts[0].toString() : Buffer.concat(parts).toString())
      parts = []
      from = at + 1
    }
    if (from < chunk.length) parts.push(Buffer.from(chunk.subarray(from)))
  }
}

/** Read and write the socket. Bun has no `net.Socket` of a descriptor: there it is read as a file is. */
function open(descriptor, take, ended) {
  if (!process.versions.bun) {
    const socket = new net.Socket({ fd: descriptor, readable: true, writable: true })
    socket.on("data", take).on("end", ended).on("close", ended).on("error", ended)
    return (line) => socket.write(line)
  }
  const stream = fs.createReadStream(null, { fd: descriptor, autoClose: false })
  stream.on("data", take).on("end", ended).on("error", ended)
  return (line) => {
    const bytes = Buffer.from(line)
    for (let sent = 0; sent < bytes.length; ) {
      try {
        sent += fs.writeSync(descriptor, bytes, sent)
      } catch (error) {
        if (error.code !== "EAGAIN") return ended()
        // The socket is full: wait for a millisecond, since there is no event to wait for.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
      }
    }
  }
}
