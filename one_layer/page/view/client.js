/** Calls of the worker that has the models: `{id, call, args, place}` to it, `{id, result}` or `{id, error}` from it. */

const PATIENCE = 250; // milliseconds after which an answer looks old

export class Client {
  #waiting = new Map();
  #last = 0;

  constructor(worker) {
    this.worker = worker;
    worker.onmessage = ({ data: { id, result, error } }) => {
      const { resolve, reject } = this.#waiting.get(id) ?? {};
      this.#waiting.delete(id);
      if (error !== undefined) reject?.(new Error(error));
      else resolve?.(result);
    };
    worker.onerror = (event) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(event.message || "The model stopped."));
      this.#waiting.clear();
    };
  }

  /** Asks the model of the ticket at `place`. */
  call(place, name, ...args) {
    return new Promise((resolve, reject) => {
      this.#waiting.set(++this.#last, { resolve, reject });
      this.worker.postMessage({ id: this.#last, call: name, args, place });
    });
  }
}

/**
 * A function that asks only for the newest: one call runs, one waits, and those between are never made, so that typing and sliding never
 * pile up work. `show` gets each result that came back; `place`, where they are shown, is busy meanwhile, and says an error.
 */
export function newest(place, ask, show) {
  let [running, next] = [false, null];
  const run = async (args) => {
    running = true;
    const slow = setTimeout(() => place.setAttribute("aria-busy", "true"), PATIENCE);
    try {
      const result = await ask(...args);
      if (!next) {
        place.classList.remove("wrong");
        show(result, ...args);
      }
    } catch (error) {
      if (!next) failed(place, error);
    }
    clearTimeout(slow);
    running = false;
    if (!next) return place.setAttribute("aria-busy", "false");
    const waiting = next;
    next = null;
    run(waiting);
  };
  return (...args) => {
    if (running) next = args;
    else run(args);
  };
}

/** Says an error where an answer would be. */
export function failed(place, error) {
  place.classList.add("wrong");
  place.textContent = error.message;
}
