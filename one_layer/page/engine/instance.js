/** Where WebAssembly with SIMD is: the functions of product.wat over a memory of their own. */
import { PRODUCT } from "./product.js";

const PAGE = 2 ** 16; // bytes

let compiled; // the module; null where the browser has none

function compile() {
  try {
    const bytes = Uint8Array.from(atob(PRODUCT.replaceAll("\n", "")), (letter) => letter.charCodeAt(0));
    return WebAssembly.validate(bytes) ? new WebAssembly.Module(bytes) : null;
  } catch {
    return null; // no WebAssembly, or the policy of the page forbids it
  }
}

/** The functions, and the buffer of a memory of so many bytes; null where the browser has no module, or less memory. @param {number} bytes */
export function instanceOf(bytes) {
  if (compiled === undefined) compiled = compile();
  if (!compiled) return null;
  try {
    const pages = Math.ceil(bytes / PAGE), memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    return { ...new WebAssembly.Instance(compiled, { page: { memory } }).exports, buffer: memory.buffer };
  } catch {
    return null;
  }
}
