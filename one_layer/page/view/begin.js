/* Unpacks the scripts of the page and starts them: this is the only script that runs from the file itself. */
"use strict";
(async () => {
  const fail = (message) => {
    const place = document.getElementById("failure");
    document.getElementById("summary").hidden = true;
    place.hidden = false;
    place.textContent = message;
  };
  // one_layer/page/embedding.py. The bytes 128 to 159 are letters of windows-1252 with other numbers.
  const odd = new TextDecoder("windows-1252").decode(Uint8Array.from({ length: 32 }, (_, byte) => 128 + byte));
  const byteOf = Uint8Array.from({ length: 0x2200 }, (_, code) => code);
  for (let byte = 0; byte < 32; byte++) byteOf[odd.charCodeAt(byte)] = 128 + byte;
  const bytesOf = (id) => {
    const element = document.getElementById(id), text = element.textContent, shift = Number(element.dataset.shift);
    const bytes = new Uint8Array(text.length);
    let length = 0;
    for (let place = 0; place < text.length; place++) {
      let code = text.charCodeAt(place);
      if (code === 61) code = text.charCodeAt(++place) - 64; // the mark =
      bytes[length++] = byteOf[code] - shift;
    }
    element.remove(); // so that the text does not stay in memory
    return bytes.slice(0, length);
  };
  if (document.characterSet !== "windows-1252") {
    fail("The server sends this page in another encoding than its own: download the file, and open it from your disk.");
    return;
  }
  if (typeof DecompressionStream === "undefined") {
    fail("This browser is too old for the page: use a version of 2023 or later of Chrome, Edge, Firefox or Safari.");
    return;
  }
  try {
    const unpacked = new Blob([bytesOf("scripts")]).stream().pipeThrough(new DecompressionStream("gzip"));
    const { view, worker, tables } = JSON.parse(await new Response(unpacked).text());
    const ids = [...document.querySelectorAll("script[id^=ticket]")].map(({ id }) => id);
    const url = URL.createObjectURL(new Blob([worker], { type: "text/javascript" }));
    const script = document.createElement("script");
    script.textContent = `window.oneLayer = (() => {\n${view}return modules;\n})();`;
    document.body.append(script);
    await window.oneLayer["view/main.js"].start(new Worker(url), ids.map(bytesOf), tables);
  } catch (error) {
    fail(`The page is damaged (${error.message}): download it again.`);
  }
})();
