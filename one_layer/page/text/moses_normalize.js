// Moses' normalisation of punctuation, as sacremoses' MosesPunctNormalizer(language, perl_parity=True) applies it.

import { strip, WHITE } from "./python.js";

// Each rule: what is replaced, and by what. They are applied in this order.
const RULES = [
  [/\r/gu, ""],
  [/\(/gu, " ("],
  [/\)/gu, ") "],
  [/ +/gu, " "],
  [/\) ([.!:?;,])/gu, ")$1"],
  [/\( /gu, "("],
  [/ \)/gu, ")"],
  [/(\p{Nd}) %/gu, "$1%"],
  [/ :/gu, ":"],
  [/ ;/gu, ";"],
  [/`/gu, "'"],
  [/''/gu, ' " '],
  [/[„“”]/gu, '"'],
  [/–/gu, "-"],
  [/—/gu, " - "],
  [/ +/gu, " "],
  [/´/gu, "'"],
  [/([a-zA-Z])‘([a-zA-Z])/gu, "$1'$2"],
  [/([a-zA-Z])’([a-zA-Z])/gu, "$1'$2"],
  [/[‘‚]/gu, "'"],
  [/’/gu, '"'],
  [/''/gu, '"'],
  [/…/gu, "..."],
  [/\u00a0«\u00a0/gu, ' "'],
  [/«\u00a0?/gu, '"'],
  [/\u00a0»\u00a0/gu, '" '],
  [/\u00a0?»/gu, '"'],
  [/\u00a0%/gu, "%"],
  [/nº\u00a0/gu, "nº "],
  [/\u00a0:/gu, ":"],
  [/\u00a0ºC/gu, " ºC"],
  [/\u00a0cm/gu, " cm"],
  [/\u00a0([?!;])/gu, "$1"],
  [/,\u00a0/gu, ", "],
  [/ +/gu, " "],
];
const QUOTATIONS = {
  en: [[/"([,.]+)/gu, '$1"']],
  de: [
    [/,"/gu, '",'],
    [new RegExp(`(\\.+)"([${WHITE}]*[^<])`, "gu"), '"$1$2'], // not the full stop at the end of the sentence
  ],
};
const NUMBERS = { en: "$1.$2", de: "$1,$2" };

// The function that normalises a text in English (`en`) or German (`de`).
export function normalizerOf(language) {
  const rules = [...RULES, ...QUOTATIONS[language], [/(\p{Nd})\u00a0(\p{Nd})/gu, NUMBERS[language]]];
  return (text) => strip(rules.reduce((line, [found, written]) => line.replace(found, written), text));
}
