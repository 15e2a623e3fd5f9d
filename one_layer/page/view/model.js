/** The model in the worker, as the parts of the page use it. */

/** Opens a ticket. Returns its description, with functions that ask the worker. */
export async function openModel(client, bytes, tables) {
  const start = performance.now();
  const facts = await client.call("open", bytes, tables);
  const matrices = facts.matrices;
  return {
    ...facts,
    milliseconds: performance.now() - start,
    matrix: (role) => matrices.find((each) => each.role === role),
    run: (line, options) => client.call("run", line, options),
    damaged: (line, damage) => client.call("damaged", line, damage),
    mask: (role, depth) => client.call("mask", role, depth),
    weights: (role, seed, depth) => client.call("weights", role, seed, depth),
    overlap: (role) => client.call("overlap", role),
    depthWords: (line) => client.call("depthWords", line),
    generate: (line, options) => written(client, line, options),
  };
}

let begun = 0;

/** The text that a model has written so far, token by token. */
async function* written(client, line, options) {
  const key = await client.call("begin", line, { ...options, key: ++begun });
  for (;;) {
    const { text, done } = await client.call("next", key);
    if (done) return;
    yield text;
  }
}
