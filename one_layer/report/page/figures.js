// The figures of the page, one for each question.

function described(point, bench) {
  const lines = [`${point.mean.toFixed(bench.digits)}${point.deviation !== null ? ` ± ${point.deviation.toFixed(bench.digits)}` : ""} ${bench.measure}`];
  lines.push(point.values.length > 1 ? `${point.values.length} runs: ${point.values.map((value) => value.toFixed(bench.digits)).join(", ")}` : "one run");
  if (point.bytes) lines.push(`${megabytes(point.bytes)}${point.file ? "" : ", counted"}`);
  if (point.seconds) lines.push(`trained in ${duration(point.seconds)}`);
  return lines;
}

function scored(point, bench, xs) {
  return { x: xs, y: point.mean, deviation: point.deviation, label: point.label, model: point.model, tip: described(point, bench), go: point.runs[0] };
}

// What is a model worth for its bytes?
function bytesFigure(host, place) {
  const bench = DATA.benches[place];
  const sized = bench.points.filter((point) => point.bytes);
  if (sized.length < 3) return bench.points.length > 2 ? rankFigure(host, place) : host.remove();
  const kinds = [...new Set(sized.map((point) => DATA.named[point.model].kind))].sort((a, b) => DATA.kinds[a] - DATA.kinds[b]);
  const sign = bench.less ? -1 : 1;
  const best = bench.points.reduce((a, b) => (sign * b.mean > sign * a.mean ? b : a));
  const settings = { y: "near", papers: true };
  const box = element("div", { class: "plot" });
  const front = sized.filter((point) => point.frontier).sort((a, b) => a.bytes - b.bytes);
  const joined = (shown) => (front.length > 1 ? front.filter((point) => shown.includes(point)) : []);
  const scores = sized.map((point) => sign * point.mean).sort((a, b) => a - b);
  const low = scores[Math.floor(scores.length / 4)], high = scores[Math.floor(3 * scores.length / 4)];
  const far = (point) => sign * point.mean < low - 3 * (high - low) - 1e-9;
  const away = sized.filter(far).length;
  const lookOf = (kind) => DATA.kinds[kind] % COLOURS.length;
  const draw = chart(box, () => {
    const shown = settings.y === "near" ? sized.filter((point) => !far(point)) : sized;
    const series = kinds.map((kind) => ({ model: null, colour: COLOURS[lookOf(kind)], shape: lookOf(kind),
      points: shown.filter((point) => DATA.named[point.model].kind === kind && !chosen.hidden.has(point.model))
        .map((point) => ({ ...scored(point, bench, point.bytes), hollow: !point.file, named: point.frontier || point === best || sized.length <= 8 })) }));
    series.unshift({ model: null, colour: "currentColor", line: true, dash: "5 4", width: 1,
      points: joined(shown).map((point) => scored(point, bench, point.bytes)) });
    const levels = best.bytes ? [] : [{ ...scored(best, bench, null), label: `${best.label} (no file)`, named: true, dash: DASHES[1] }];
    series.push(ofPaper(bench.papers.filter((paper) => paper.bytes), (paper) => paper.bytes));
    return { name: `${bench.measure} against bytes`, series, levels, x: { label: "bytes of the model", log: true, format: megabytes }, y: { label: bench.measure },
      height: Math.round(Math.min(560, Math.max(320, box.clientWidth * 0.62))) };
  });
  host.append(element("h3", {}, `What is a model worth for its bytes? ${bench.measure} against bytes`), box,
    element("ul", { class: "legend" }, ...kinds.map((kind) => element("li", {}, sample(lookOf(kind)), kind))),
    away ? choice("Show", [["near", `without ${away} far below`], ["all", "all"]], "near", (value) => { settings.y = value; draw(); emphasise(); }) : "",
    element("figcaption", {}, "Filled: bytes of a file, vocabularies included. Hollow: no file; weights counted. Bars: one standard deviation over seeds. " +
      `Dashed: no smaller file has a better score; these have names.${best.bytes ? "" : " Dotted across: the best model, which has no file."} The pointer shows values, and a click makes a model stand out.`));
}

// The numbers of paper A as a series of their own.
function ofPaper(papers, x) {
  return { model: null, colour: GREY, shape: 3, points: papers.map((paper) => ({ x: x(paper), y: paper.mean, deviation: paper.deviation, label: paper.label, model: null,
    named: true, hollow: true, tip: [String(paper.mean), ...(paper.bytes ? [megabytes(paper.bytes)] : [])] })) };
}

// Which model is best? For models without bytes.
function rankFigure(host, place) {
  const bench = DATA.benches[place];
  const ranked = [...bench.points].sort((a, b) => (bench.less ? 1 : -1) * (a.mean - b.mean)).slice(0, 24);
  const box = element("div", { class: "plot" });
  chart(box, () => ({ name: "scores", series: [{ model: null, colour: COLOURS[0], shape: 0, points: ranked.map((point, rank) => ({ ...scored(point, bench, rank + 1), named: rank < 3 })) }],
    x: { label: "rank", whole: true }, y: { label: bench.measure } }));
  host.append(element("h3", {}, `Which model is best? ${bench.measure}`), box);
}

// How many weights should masks keep? A figure for each question of paper A, with a panel for each group of models alike in all else.
function keepFigures(host, place) {
  const bench = DATA.benches[place];
  host.replaceChildren(...(DATA.keeps[place] ?? []).map((figure) => {
    const lines = [...new Set(figure.panels.flatMap((panel) => panel.lines.map((line) => line.name)))];
    const dense = [...new Set(figure.panels.flatMap((panel) => panel.dense))];
    const dash = (point) => DASHES[dense.indexOf(point) % DASHES.length];
    const papers = bench.papers.filter((paper) => paper.figures.includes(figure.kind));
    const all = figure.panels.flatMap((panel) => [...panel.lines.flatMap((line) => line.points), ...panel.dense])
      .flatMap((point) => [bench.points[point].mean - (bench.points[point].deviation ?? 0), bench.points[point].mean + (bench.points[point].deviation ?? 0)])
      .concat(papers.map((paper) => paper.mean));
    const panels = figure.panels.map((panel) => {
      const box = element("div", { class: "plot" });
      chart(box, () => ({
        name: figure.title, x: { label: "keep", all: [0, 1], room: 0 }, y: { label: bench.measure, all },
        series: [...panel.lines.map((line) => ({ model: bench.points[line.points[0]].model, colour: COLOURS[lines.indexOf(line.name) % COLOURS.length],
          shape: lines.indexOf(line.name), line: true, points: line.points.map((point) => scored(bench.points[point], bench, bench.points[point].keep)) })), ofPaper(papers, (paper) => paper.keep)],
        levels: panel.dense.map((point) => ({ ...scored(bench.points[point], bench, null), dash: dash(point) })),
      }));
      return element("div", {}, panel.where ? element("h4", {}, panel.where) : "", box);
    });
    const key = lines.map((name, number) => element("li", {}, sample(number), name));
    return element("figure", {}, element("h3", {}, figure.title), element("div", { class: "panels" }, ...panels),
      element("ul", { class: "legend" }, ...key, ...dense.map((point) => element("li", {}, dashes(dash(point)), bench.points[point].label)),
        papers.length ? element("li", {}, "◇ paper A, Table 1") : ""),
      element("figcaption", {}, "Mean over seeds; bars are one standard deviation. The panels have one axis of scores. The papers give no numbers for these figures" +
        (papers.length ? "; Table 1 of paper A has some at keep 0.5, and of the fully weighted model (at keep 1)." : ".")));
  }));
}

// The values of an axis without the highest tenth, if that would press all others together.
function most(values) {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  const high = known[Math.floor(0.9 * (known.length - 1))];
  return known.length > 20 && known.at(-1) - high > high - known[0] ? known.filter((value) => value <= high) : known;
}

// How fast do models learn?
function convergenceFigures(host) {
  const sign = (run) => (["nll", "perplexity", "bits_per_byte", "bits_per_character"].includes(run.select) ? 1 : -1);
  const groups = DATA.convergence.map((group) => ({ ...group, runs: group.runs.filter((run) => (DATA.runs[run].curve.step ?? []).length > 2),
    all: group.runs.length })).filter((group) => group.runs.length);
  host.classList.toggle("panels", groups.length > 1);
  host.replaceChildren(...groups.map((group) => {
    const runs = group.runs.map((place) => ({ ...DATA.runs[place], place }));
    const selects = [...new Set(runs.map((run) => run.select))];
    const score = selects.length === 1 && selects[0] !== "nll" ? selects[0] : null;
    const final = (run) => Math.min(...(run.curve.nll ?? [Infinity]).filter((value) => value !== null));
    const best = [...new Set([...runs].sort((a, b) => final(a) - final(b)).map((run) => run.model))].slice(0, COLOURS.length);
    const settings = { x: group.seconds ? "seconds" : "step", y: "nll", log: false };
    const box = element("div", { class: "plot" });
    const last = Math.max(...runs.flatMap((run) => run.curve.seconds ?? [0]));
    const axes = { seconds: { label: "training, without evaluations", ...time(last) }, step: { label: "updates" }, flops: { label: "operations", format: operations } };
    const cut = most(runs.flatMap((run) => run.curve.nll ?? []));
    const draw = chart(box, () => ({
      name: "validation curves", x: { ...axes[settings.x], zero: true },
      y: { label: settings.y === "nll" ? "validation nll" : `validation ${score}`, log: settings.log, all: settings.y === "nll" && !settings.log ? cut : undefined },
      series: runs.filter((run) => run.curve[settings.x] && run.curve[settings.y]).sort((a, b) => best.includes(a.model) - best.includes(b.model)).map((run) => ({
        model: run.model, colour: best.includes(run.model) ? COLOURS[best.indexOf(run.model)] : GREY, line: true, width: best.includes(run.model) ? 1.6 : 0.7,
        points: run.curve[settings.x].map((value, at) => ({ x: value, y: run.curve[settings.y][at], label: run.name, model: run.model, go: run.place,
          tip: [`${short(run.curve[settings.y][at], 5)} at update ${run.curve.step[at]}`, `${duration(run.curve.seconds[at])}`] }))
          .filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y)) })),
    }));
    const again = (name) => (value) => { settings[name] = value; draw(); emphasise(); };
    const times = [group.seconds ? ["seconds", "seconds"] : null, ["step", "updates"], runs.some((run) => run.curve.flops) ? ["flops", "operations"] : null].filter(Boolean);
    return element("figure", {}, element("h3", {}, `How fast do models learn?${groups.length > 1 ? ` (${group.of})` : ""}`),
      element("div", { class: "choices" }, choice("Against", times, settings.x, again("x")),
        score ? choice("Score", [["nll", "nll"], ["score", score]], "nll", again("y")) : "",
        choice("Scale", [[false, "linear"], [true, "log"]], false, again("log"))), box,
      legend(best.map((model, at) => ({ name: model, model, colour: COLOURS[at] }))),
      element("figcaption", {}, "Each line is one run; the best models have colours, the others are grey. A click makes a model stand out, a double click opens the run. " +
        (group.seconds ? "Times depend on the device and on what else it did." : "The runs had other devices, or populations of other sizes, so their seconds cannot be compared.") +
        (group.all > runs.length ? ` Left out: ${group.all - runs.length} runs with fewer than three evaluations.` : "")));
  }));
}
