/** A part of a matrix as a picture: a cell for each weight, blue above 0 and orange below, empty where a mask leaves the weight out. */

/** The colours of the page, as [red, green, blue]; they differ in light and dark. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["above", "below", "hole", "ink"].map((name) => [name, style.getPropertyValue(`--${name}-rgb`).split(" ").map(Number)]));
}

const MOST = 1024; // cells across that are drawn; of a larger window, every second, third ... one

/**
 * Draws the window {top, left, size} of a matrix {shape, values, mask}; a mask is a bit for each weight, or null. With `signs`, a bit turns
 * the sign of its weight, and no weight is left out. `shown`: how many rows are
 * drawn already. `cell`: the weight with a frame around it, or null.
 */
export function drawMatrix(canvas, matrix, { top, left, size }, { shown = Infinity, cell = null } = {}) {
  const pixels = Math.round(canvas.clientWidth * devicePixelRatio), palette = colours();
  if (!pixels) return;
  if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
  const cells = pictureOf(matrix, { top, left, size }, shown, palette), scale = pixels / size, context = canvas.getContext("2d");
  context.clearRect(0, 0, pixels, pixels);
  context.imageSmoothingEnabled = scale < 1;
  context.drawImage(cells, 0, 0, Math.min(size, matrix.shape[1] - left) * scale, Math.min(size, matrix.shape[0] - top) * scale);
  if (!cell) return;
  context.strokeStyle = `rgb(${palette.ink.join(" ")})`;
  context.lineWidth = 2 * devicePixelRatio;
  context.strokeRect((cell.column - left) * scale, (cell.row - top) * scale, Math.max(scale, 4), Math.max(scale, 4));
}

/** A canvas with one pixel for each weight of the window. */
function pictureOf({ shape: [rows, columns], values, mask, signs, largest }, { top, left, size }, shown, { above, below, hole }) {
  const step = Math.ceil(size / MOST);
  const [height, width] = [Math.min(size, rows - top), Math.min(size, columns - left)].map((cells) => Math.ceil(cells / step));
  const picture = new ImageData(width, height), { data } = picture;
  for (let row = 0, pixel = 0; row < height && top + row * step < shown; row++) {
    for (let column = 0; column < width; column++, pixel += 4) {
      const place = (top + row * step) * columns + left + column * step, bit = mask === null || (mask[place >> 3] >> (place & 7)) & 1;
      const kept = bit || signs, value = mask !== null && signs && bit ? -values[place] : values[place];
      const strength = kept ? 0.15 + 0.85 * Math.min(1, Math.abs(value) / largest) : 0;
      const colour = value < 0 ? below : above;
      for (let channel = 0; channel < 3; channel++) data[pixel + channel] = hole[channel] + strength * (colour[channel] - hole[channel]);
      data[pixel + 3] = 255;
    }
  }
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").putImageData(picture, 0, 0);
  return canvas;
}

/** The weight under a pointer, or null beside the matrix. */
export function cellAt(canvas, event, [rows, columns], { top, left, size }) {
  const box = canvas.getBoundingClientRect();
  const row = top + Math.floor(((event.clientY - box.top) / box.height) * size);
  const column = left + Math.floor(((event.clientX - box.left) / box.width) * size);
  return row >= 0 && column >= 0 && row < rows && column < columns ? { row, column } : null;
}
