/* Unpacks the scripts of the page and starts them: this is the only script that runs from the file itself. */
"use strict";
(async () => {
  const fail = (message) => {
    const place = document.getElementById("failure");
    document.getElementById("summary").hidden = true;
    place.hidden = false;
    place.textContent = message;
  };
  const bytesOf = (id) => {
    const element = document.getElementById(id);
    const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
    element.remove(); // so that the text does not stay in memory
    return bytes;
  };
  if (typeof DecompressionStream === "undefined") {
    fail("This browser is too old for the page: use a version of 2023 or later of Chrome, Edge, Firefox or Safari.");
    return;
  }
  try {
    const unpacked = new Blob([bytesOf("scripts")]).stream().pipeThrough(new DecompressionStream("gzip"));
    const { view, worker, tables } = JSON.parse(await new Response(unpacked).text());
    const url = URL.createObjectURL(new Blob([worker], { type: "text/javascript" }));
    const script = document.createElement("script");
    script.textContent = `window.oneLayer = (() => {\n${view}return modules;\n})();`;
    document.body.append(script);
    await window.oneLayer["view/main.js"].start(new Worker(url), bytesOf("ticket"), tables);
  } catch (error) {
    fail(`The page is damaged (${error.message}): download it again.`);
  }
})();
