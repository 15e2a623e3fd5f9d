/** The page: its words about this ticket, and the parts that follow what is typed. */
import { Client, newest } from "./client.js";
import { showDamage } from "./damage.js";
import { showDepths } from "./depths.js";
import { byId, counted, el, Value } from "./dom.js";
import { examplesFor } from "./examples.js";
import { showFills } from "./fill.js";
import { showGeneration } from "./generate.js";
import { showLabels } from "./classify.js";
import { showLayers } from "./layers.js";
import { openModel } from "./model.js";
import { inOrder, languageName, roleName } from "./names.js";
import { sentencesOf } from "./sentences.js";
import { showShares } from "./shares.js";
import { showTranslations } from "./translate.js";

const USES = { translation: showTranslations, classification: showLabels, causal_lm: showGeneration, masked_lm: showFills };

const state = { models: [], template: null, model: null, line: null, role: null, turn: 0 };

/** Opens the tickets in the worker, one after the other, and shows the first one. Says in a sentence why, if it cannot. */
export async function start(worker, tickets, tables) {
  const client = new Client(worker), { models } = state;
  state.template = byId("model").cloneNode(true);
  try {
    for (const bytes of tickets) {
      models.push(await openModel(client, models.length, bytes, tables));
      if (models.length === 1) use(models[0], textInAddress());
    }
    addEventListener("hashchange", () => use(state.model, textInAddress() ?? state.line.now));
    if (models.length > 1) showOthers();
  } catch (error) {
    byId("summary").hidden = true;
    byId("failure").hidden = false;
    byId("failure").textContent = `This ticket cannot be used: ${error.message}`;
  }
}

/** What `#text=` in the address asks for; null without it. */
function textInAddress() {
  const [, text = null] = location.hash.match(/^#text=(.*)$/s) ?? [];
  return text?.replace(/(?:%[\da-f]{2})+/gi, decoded) ?? null;
}

/** Encoded characters of an address; a row of bytes that encodes none stays as it is. */
function decoded(bytes) {
  try {
    return decodeURIComponent(bytes);
  } catch {
    return bytes;
  }
}

/** What the shown model has to do with the others of the page, once these are known. */
function showOthers() {
  showChoices();
  showTools(state.model);
  state.role?.set(state.role.now);
}

/** Shows a model in fresh elements, so that nothing of the one before listens any more. `text`: what is typed; null for an example. */
function use(model, text) {
  byId("model").replaceWith(state.template.cloneNode(true));
  state.model = model;
  describe(model);
  showChoices();
  byId("model").hidden = false;
  show(asked(model, ++state.turn), text);
}

/** A model as one view asks it. Once another is shown, no answer comes any more: a late one would be written into the new view. */
function asked(model, turn) {
  const still = (answer) => (turn === state.turn ? answer : new Promise(() => {}));
  const asks = Object.entries(model).filter(([name, value]) => typeof value === "function" && !["matrix", "generate"].includes(name));
  const answered = asks.map(([name, ask]) => [name, async (...given) => still(await ask(...given))]);
  async function* generate(...given) {
    for await (const text of model.generate(...given)) yield await still(text);
    await still();
  }
  return { ...model, ...Object.fromEntries(answered), generate };
}

/** A button for each model. What is typed stays, unless it is an example in another language. */
function showChoices() {
  const { models, model } = state;
  byId("choices").hidden = models.length < 2;
  const choose = (other) => {
    const kept = other.source === model.source || !examplesFor(model).includes(state.line.now);
    use(other, kept ? state.line.now : null);
    byId("choices").children[other.place].focus();
  };
  byId("choices").replaceChildren(...models.map((each) => el("button", { type: "button", "aria-pressed": `${each === model}`, onclick: () => choose(each) }, shortName(each))));
}

function show(model, text) {
  const fields = model.texts === 2 ? [byId("line"), byId("second")] : [byId("line")], line = (state.line = new Value(""));
  const read = () => line.set(fields.map(({ value }) => value.replaceAll("\t", " ")).join("\t"));
  const write = (text) => {
    const parts = fields.length > 1 ? text.split("\t") : [text];
    fields.forEach((field, place) => (field.value = parts[place] ?? ""));
    read();
  };
  const examples = examplesFor(model);
  write(text ?? examples[0] ?? "");
  for (const field of fields) {
    field.hidden = field.previousElementSibling.hidden = false;
    field.oninput = read;
  }
  const chip = (text) => el("button", { type: "button", lang: codeOf(model.source) || null, dir: "auto", onclick: () => (write(text), fields[0].focus()) }, text.replace("\t", " | ") || "(nothing)");
  byId("examples").replaceChildren(...examples.map(chip));
  showTools(model);
  line.watch(newest(byId("unread"), (text) => model.unread(model.task === "translation" ? sentencesOf(text).map((each) => each.text) : [text]), (said) => (byId("unread").textContent = said)));
  const answer = new Value(null), part = USES[model.task](model, line, answer) ?? line;

  byId("inside").hidden = !model.masked;
  if (model.masked) showInside(model, part, answer);
}

/** Copies a translation, and turns it round where the page has the other direction too. */
function showTools(model) {
  const back = state.models.find(({ task, source, target }) => task === "translation" && source === model.target && target === model.source);
  byId("tools").hidden = model.task !== "translation";
  byId("swap").hidden = !back;
  byId("swap").onclick = ({ currentTarget }) => {
    if (isOff(currentTarget)) return;
    use(back, byId("answer").textContent);
    byId("swap").focus();
  };
  byId("copy").onclick = async ({ currentTarget }) => {
    if (isOff(currentTarget)) return;
    await copied(byId("answer"));
    byId("copy").textContent = "Copied";
    setTimeout(() => (byId("copy").textContent = "Copy the translation"), 1500);
  };
}

/** Whether a button does nothing now. It keeps the focus, which a disabled one would lose. */
const isOff = (button) => button.getAttribute("aria-disabled") === "true";

/** Copies the text of an element, also where a browser gives a page from disk no clipboard. */
async function copied(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
  } catch {
    getSelection().selectAllChildren(element);
    document.execCommand("copy");
  }
}

/** The random layer and its masks. */
function showInside(model, line, answer) {
  const signs = turnsSigns(model);
  byId("inside-lead").textContent = inside(model.matrices.some(({ own }) => own), model.depths.includes("+"), signs ? "change their sign" : "count");
  if (signs) for (const [id, words] of Object.entries(SIGN_WORDS)) byId(id).textContent = words;
  const matrices = inOrder(model.matrices), first = matrices.find(({ role }) => role.endsWith("ffn/in")) ?? matrices[0];
  const role = new Value(first.role), seed = new Value(model.seed);
  byId("role").replaceChildren(...matrices.map((each) => el("option", { value: each.role, selected: each === first }, roleName(each.role))));
  byId("role").onchange = (event) => role.set(event.target.value);
  state.role = role;
  showLayers(model, role, seed, () => state.models.filter((each) => each.place !== model.place && each.masked).map((other) => ({ name: shortName(other), model: other })));
  showShares(model, role);
  showDamage(model, line, answer, seed);
  byId("depths").hidden = !model.hasDepthWords;
  if (model.hasDepthWords) showDepths(model, line);
}

/** What is said of layers of their own, or of one layer for all depths, or for those of each of `two` stacks; `effect` is what a bit of a mask does to weights. */
function inside(own, two, effect) {
  const end = "Training found the masks.";
  if (own) return `Each depth of the network has a layer of its own. It is random, and it stays random. A mask says which of its weights ${effect}. ${end}`;
  const [layer, same] = two ? ["one layer for the encoder and one for the decoder", "the layer of its side"] : ["one layer", "the same layer"];
  return `There is ${layer}. It is random, and it stays random. Each depth of the network uses ${same}, and has a mask that says which of its weights ${effect} there. ${end}`;
}

/** Whether the bits of all masks of a model are signs. */
function turnsSigns({ matrices }) {
  const masked = matrices.filter((each) => each.masked);
  return masked.length > 0 && masked.every(({ signs }) => signs);
}

const SIGN_WORDS = { "or-else": "turns its sign", does: "turns", do: "turn" };
const TITLES = {
  translation: ({ source, target }) => `This page translates ${languageName(source)} to ${languageName(target)}.`,
  classification: ({ labels }) => `This page labels a text: ${labels.join(" or ")}.`,
  causal_lm: () => "This page writes text.",
  masked_lm: () => "This page fills gaps in a text.",
};
const SHORT = { classification: () => "Label a text", causal_lm: () => "Write on", masked_lm: () => "Fill gaps", translation: ({ source, target }) => `${languageName(source)} to ${languageName(target)}` };
const shortName = (model) => SHORT[model.task](model);
const FIELDS = { translation: ["source", "target"], classification: ["Text", "Label"], causal_lm: ["The beginning of a text", "The model writes on"], masked_lm: ["A text with <mask>", "What may stand there"] };

/** The code of a language for screen readers; empty for plain text and labels, which have none. */
const codeOf = (language) => (["text", "label"].includes(language) ? "" : language.replaceAll("_", "-"));

function describe(model) {
  const title = TITLES[model.task](model);
  byId("title").textContent = title;
  document.title = `one_layer: ${title}`;
  const signs = turnsSigns(model);
  const seconds = (model.milliseconds / 1000).toFixed(1), besides = model.trained ? `, and ${counted(model.trained)} other numbers` : "";
  byId("summary").textContent = model.masked
    ? `Its network is random: the seed ${model.seed} has just drawn it, here, in ${seconds} seconds. Training changed only the masks, ` +
      `one bit for each weight, which say whether the weight ${signs ? "changes its sign" : "counts"}` +
      `${besides}. Nothing that you type leaves this page.`
    : model.matrices.some(({ drawn }) => drawn)
      ? `The seed ${model.seed} has just drawn its random layers, here, in ${seconds} seconds. They have no masks, and training changed ` +
        `only the ${counted(model.trained)} other numbers. Nothing that you type leaves this page.`
      : `Training changed all its ${counted(model.trained)} weights: it has no masks. Nothing that you type leaves this page.`;
  const facts = [
    [`${counted(Math.round(model.bytes / 1000))} kB`, "the whole model"],
    [model.depths, model.depths === "1" ? "layer deep" : "layers deep"],
    ...(model.masked ? [[counted(model.masked), "bits in the masks"]] : []),
    ...(model.masked && !signs ? [[`${Math.round(100 * model.keep)} %`, "of the weights kept by a mask"]] : []),
    ...(model.trained ? [[counted(model.trained), "numbers besides"]] : []),
  ];
  byId("facts").replaceChildren(...facts.map(([number, words]) => el("li", {}, el("b", {}, `${number}`), el("span", {}, words))));
  const [from, to] = FIELDS[model.task].map((name) => (name in model ? languageName(model[name]) : name));
  byId("line-label").textContent = from;
  byId("answer-label").textContent = to;
  byId("line").lang = codeOf(model.source);
  byId("answer").lang = codeOf(model.target);
  byId("notes").replaceChildren(...model.notes.map((note) => el("li", {}, note)));
  byId("sampling").hidden = model.task !== "causal_lm";
  byId("masking").hidden = model.task !== "masked_lm";
}
