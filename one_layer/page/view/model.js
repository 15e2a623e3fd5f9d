/** The model in the worker, as the parts of the page use it. */

/** Opens the ticket at `place`, after those before it. Returns its description, with functions that ask the worker. */
export async function openModel(client, place, bytes, tables) {
  const start = performance.now(), call = (name, ...args) => client.call(place, name, ...args);
  const facts = await call("open", bytes, tables);
  const matrices = facts.matrices;
  return {
    ...facts,
    place,
    milliseconds: performance.now() - start,
    matrix: (role) => matrices.find((each) => each.role === role),
    unread: (lines) => call("unread", lines),
    run: (line, options) => call("run", line, options),
    damaged: (line, damage) => call("damaged", line, damage),
    mask: (role, depth) => call("mask", role, depth),
    weights: (role, seed, depth) => call("weights", role, seed, depth),
    beside: (other, role) => call("beside", other.place, role),
    overlap: (role) => call("overlap", role),
    depthWords: (line) => call("depthWords", line),
    generate: (line, options) => written(call, line, options),
  };
}

let begun = 0;

/** The text that a model has written so far, token by token. */
async function* written(call, line, options) {
  const key = await call("begin", line, { ...options, key: ++begun });
  for (;;) {
    const { text, done } = await call("next", key);
    if (done) return;
    yield text;
  }
}
