/** The names that people read for roles of matrices. */

const PARTS = { self_attention: "self-attention", cross_attention: "cross-attention", ffn: "feed-forward", embedding: "table of words", shared: "shared", head: "head" };
const MATRICES = { in: "first matrix", out: "second matrix", gate: "gate", query: "queries", key: "keys", value: "values", output: "output" };

/** `encoder/ffn/in` to `Encoder: feed-forward, first matrix`. */
export function roleName(role) {
  const [stack, ...rest] = role.split("/");
  const words = rest.map((part) => PARTS[part] ?? MATRICES[part] ?? part.replaceAll("_", " "));
  return `${stack[0].toUpperCase()}${stack.slice(1)}: ${words.join(", ")}`;
}

const ORDER = ["encoder", "decoder", "shared", "self_attention", "cross_attention", "ffn", "query", "key", "value", "gate", "in", "output", "out", "embedding"];

/** Matrices in the order in which the network uses them. */
export function inOrder(matrices) {
  const key = ({ role }) => role.split("/").map((part) => String.fromCharCode(97 + (ORDER.indexOf(part) + 1 || ORDER.length + 1))).join("");
  return [...matrices].sort((one, other) => (key(one) < key(other) ? -1 : 1));
}

const LANGUAGES = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });

export function languageName(code) {
  try {
    return LANGUAGES.of(code.replaceAll("_", "-")) ?? code;
  } catch {
    return code;
  }
}
