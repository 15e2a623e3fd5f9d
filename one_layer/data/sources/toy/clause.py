"""A clause of the toy language, and how it is said in German and in English.

German keeps the finite verb second in a main clause, first in a question and last in a subordinate clause, and lets the
particle, the participle or the infinitive close the main clause. English keeps subject, verb, object and needs `do`.
"""

from __future__ import annotations

from dataclasses import dataclass

from one_layer.data.sources.toy.lexicon import AUXILIARY_PLURAL, NO_ADVERB, Adverb, Modal, Verb


@dataclass(frozen=True)
class Phrase:
    """A noun phrase, pronoun or adverbial on both sides."""

    german: str = ""
    english: str = ""
    plural: bool = False
    shows_case: bool = False  # whether the German form tells subject from object
    definite: bool = True


NOTHING = Phrase()
PRONOUNS = (
    Phrase("er", "he", shows_case=True),
    Phrase("sie", "she"),
    Phrase("sie", "they", plural=True),
    Phrase("wir", "we", plural=True, shows_case=True),
)


@dataclass(frozen=True)
class Clause:
    """What a clause says; the functions below say it in either language, in the order that its place asks for."""

    subject: Phrase
    verb: Verb
    object: Phrase = NOTHING
    recipient: Phrase = NOTHING
    place: Phrase = NOTHING
    adverb: Adverb = NO_ADVERB
    modal: Modal | None = None
    past: bool = False
    negated: bool = False


def german_finite(clause: Clause) -> str:
    plural = clause.subject.plural
    if clause.modal:
        return clause.modal.plural if plural else clause.modal.singular
    if clause.past:
        return AUXILIARY_PLURAL[clause.verb.auxiliary] if plural else clause.verb.auxiliary
    return clause.verb.infinitive if plural else clause.verb.singular


def german_bracket(clause: Clause) -> str:
    """What closes a main clause: the infinitive, the participle, or the particle alone."""
    if clause.modal:
        return clause.verb.particle + clause.verb.infinitive
    return clause.verb.particle + (clause.verb.participle if clause.past else "")


def german_middle(clause: Clause, without: str = "") -> str:
    """Everything but the verbs, less the part that stands at the front."""
    parts = {
        "subject": clause.subject.german,
        "adverb": clause.adverb.german,
        "recipient": clause.recipient.german,
        "object": clause.object.german,
        "negation": "nicht" if clause.negated else "",
        "place": clause.place.german,
    }
    return join(*(words for name, words in parts.items() if name != without))


def german_main(clause: Clause, front: str = "subject") -> str:
    """Verb second after `front`, which names a part; verb first where it is empty, as in a question."""
    first = getattr(clause, front).german if front else ""
    return join(first, german_finite(clause), german_middle(clause, front), german_bracket(clause))


def german_verb_last(clause: Clause) -> str:
    separate = " " if clause.modal or clause.past else ""  # "aufgemacht hat", but "aufmacht"
    return join(german_middle(clause), german_bracket(clause) + separate + german_finite(clause))


def english_clause(clause: Clause, inverted: bool = False) -> str:
    """Subject first, or for a question the auxiliary first."""
    auxiliary, main = english_verbs(clause, inverted or clause.negated)
    start = (auxiliary, clause.subject.english) if inverted else (clause.subject.english, auxiliary)
    adverb = clause.adverb.english
    often, when = (adverb, "") if clause.adverb.before_verb else ("", adverb)
    recipient = clause.recipient.english and "to " + clause.recipient.english
    negation = "not" if clause.negated else ""
    return join(*start, negation, often, main, clause.object.english, recipient, clause.place.english, when)


def english_verbs(clause: Clause, needs_auxiliary: bool) -> tuple[str, str]:
    """The auxiliary, which may be empty, and the main verb with what belongs to it ("want to turn on")."""
    verb, modal, plural = clause.verb, clause.modal, clause.subject.plural
    if modal and modal.auxiliary:
        return modal.english, verb.english
    base = f"{modal.english} {verb.english}" if modal else verb.english
    if clause.past:
        return ("did", base) if needs_auxiliary else ("", verb.past)
    if needs_auxiliary:
        return ("do" if plural else "does"), base
    return "", base if plural else third_person(base)


def third_person(base: str) -> str:
    """The singular of the present: `carry` -> `carries`, `turn on` -> `turns on`."""
    first, *rest = base.split()
    form = {"have": "has", "carry": "carries"}.get(first, first + "s")
    return join(form, *rest)


def join(*parts: str) -> str:
    """The parts that are not empty, single spaces between them."""
    return " ".join(part for part in parts if part)
