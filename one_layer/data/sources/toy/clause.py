"""A clause of the toy language, and the functions that write it in German and in English.

German puts the finite verb second in a main clause, first in a question and last in a subordinate clause. A main clause ends with
the particle, the participle or the infinitive. English keeps the order subject, verb, object, and needs `do`.
"""

from dataclasses import dataclass

from one_layer.data.sources.toy.lexicon import AUXILIARY_PLURAL, NO_ADVERB, Adverb, Modal, Verb


@dataclass(frozen=True)
class Phrase:
    """A noun phrase, pronoun or adverbial in both languages."""

    german: str = ""
    english: str = ""
    plural: bool = False
    shows_case: bool = False  # whether the German form distinguishes subject from object
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
    """The content of a clause. The functions below write it in either language, in the word order of its position."""

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
    """Returns the end of a main clause: the infinitive, the participle, or only the particle."""
    if clause.modal:
        return clause.verb.particle + clause.verb.infinitive
    return clause.verb.particle + (clause.verb.participle if clause.past else "")


def german_middle(clause: Clause, without: str = "") -> str:
    """Returns everything except the verbs and the part `without`, which stands at the front."""
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
    """Returns a main clause: the part `front`, then the verb. If `front` is empty, the verb comes first, as in a question."""
    first = getattr(clause, front).german if front else ""
    return join(first, german_finite(clause), german_middle(clause, front), german_bracket(clause))


def german_verb_last(clause: Clause) -> str:
    separate = " " if clause.modal or clause.past else ""  # "aufgemacht hat", but "aufmacht"
    return join(german_middle(clause), german_bracket(clause) + separate + german_finite(clause))


def english_clause(clause: Clause, inverted: bool = False) -> str:
    """Returns the clause with the subject first; `inverted` puts the auxiliary first, as in a question."""
    auxiliary, main = english_verbs(clause, inverted or clause.negated)
    start = (auxiliary, clause.subject.english) if inverted else (clause.subject.english, auxiliary)
    adverb = clause.adverb.english
    often, when = (adverb, "") if clause.adverb.before_verb else ("", adverb)
    recipient = clause.recipient.english and "to " + clause.recipient.english
    negation = "not" if clause.negated else ""
    return join(*start, negation, often, main, clause.object.english, recipient, clause.place.english, when)


def english_verbs(clause: Clause, needs_auxiliary: bool) -> tuple[str, str]:
    """Returns the auxiliary, which may be empty, and the main verb with its other words ("want to turn on")."""
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
    """Returns the third person singular of the present: `carry` -> `carries`, `turn on` -> `turns on`."""
    first, *rest = base.split()
    form = {"have": "has", "carry": "carries"}.get(first, first + "s")
    return join(form, *rest)


def join(*parts: str) -> str:
    """Joins the parts that are not empty with single spaces."""
    return " ".join(part for part in parts if part)
