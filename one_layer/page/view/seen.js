/** Work for a part of the page waits until the part is seen. */

/** A function that calls `act` with its newest arguments: at once where `part` is in view, otherwise when it comes into view. */
export function whileSeen(part, act) {
  let [seen, waiting] = [false, null];
  new IntersectionObserver(
    ([...changes]) => {
      seen = changes.at(-1).isIntersecting;
      if (seen && waiting) {
        const args = waiting;
        waiting = null;
        act(...args);
      }
    },
    { rootMargin: "200px" },
  ).observe(part);
  return (...args) => {
    if (seen) act(...args);
    else waiting = args;
  };
}
