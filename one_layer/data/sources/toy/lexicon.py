"""The words of the toy language: German-like forms, their English-like translations, and which words go together.

A word that occurs twice in a table is ambiguous, and another word of the sentence decides: the verb or the preposition decides for
a noun, the object or the particle for a verb, the noun for an adjective.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    german: str
    german_plural: str
    gender: str  # m, f or n
    english: str
    english_plural: str
    kind: str  # verbs and prepositions select nouns by kind


# A word that occurs twice here is ambiguous; no verb and no preposition takes both of its kinds.
NOUN_TABLE = """
mann      männer      m  man        men         person
frau      frauen      f  woman      women       person
kind      kinder      n  child      children    person
lehrer    lehrer      m  teacher    teachers    person
mädchen   mädchen     n  girl       girls       person
hund      hunde       m  dog        dogs        animal
katze     katzen      f  cat        cats        animal
pferd     pferde      n  horse      horses      animal
brief     briefe      m  letter     letters     text
zeitung   zeitungen   f  newspaper  newspapers  text
buch      bücher      n  book       books       text
apfel     äpfel       m  apple      apples      food
birne     birnen      f  pear       pears       food
brot      brote       n  loaf       loaves      food
birne     birnen      f  bulb       bulbs       device
radio     radios      n  radio      radios      device
schloss   schlösser   n  lock       locks       opening
tür       türen       f  door       doors       opening
fenster   fenster     n  window     windows     opening
hut       hüte        m  hat        hats        clothes
jacke     jacken      f  jacket     jackets     clothes
hemd      hemden      n  shirt      shirts      clothes
tisch     tische      m  table      tables      furniture
bank      bänke       f  bench      benches     furniture
kiste     kisten      f  box        boxes       furniture
bank      banken      f  bank       banks       place
schloss   schlösser   n  castle     castles     place
garten    gärten      m  garden     gardens     place
stadt     städte      f  city       cities      place
auto      autos       n  car        cars        car
fahrrad   fahrräder   n  bicycle    bicycles    bicycle
"""
NOUNS = tuple(Noun(*row.split()) for row in NOUN_TABLE.strip().split("\n"))
ANIMATE = ("person", "animal")

# stem: (translation for a person, translation for anything else)
ADJECTIVES = {
    "groß": ("tall", "big"),
    "alt": ("old", "old"),
    "schön": ("beautiful", "beautiful"),
    "jung": ("young", ""),
    "neu": ("", "new"),
}


@dataclass(frozen=True)
class Verb:
    particle: str  # the particle of a separable verb; otherwise empty
    infinitive: str  # also the plural of the present
    singular: str  # third person
    participle: str
    auxiliary: str  # for the perfect tense
    english: str
    past: str
    objects: tuple[str, ...] = ()  # the kinds of noun it takes; empty for an intransitive verb


# Verbs with the same German forms differ only in their objects; verbs with the same stem differ in their particles.
TRANSITIVE = (
    Verb("", "sehen", "sieht", "gesehen", "hat", "see", "saw", ANIMATE),
    Verb("", "suchen", "sucht", "gesucht", "hat", "look for", "looked for", (*ANIMATE, "text", "clothes")),
    Verb("", "lesen", "liest", "gelesen", "hat", "read", "read", ("text",)),
    Verb("", "essen", "isst", "gegessen", "hat", "eat", "ate", ("food",)),
    Verb("", "kaufen", "kauft", "gekauft", "hat", "buy", "bought", ("text", "food", "clothes", "furniture", "car")),
    Verb("", "besuchen", "besucht", "besucht", "hat", "visit", "visited", ("person", "place")),
    Verb("", "tragen", "trägt", "getragen", "hat", "wear", "wore", ("clothes",)),
    Verb("", "tragen", "trägt", "getragen", "hat", "carry", "carried", ("furniture",)),
    Verb("", "fahren", "fährt", "gefahren", "hat", "drive", "drove", ("car",)),
    Verb("", "fahren", "fährt", "gefahren", "hat", "ride", "rode", ("bicycle",)),
    Verb("auf", "machen", "macht", "gemacht", "hat", "open", "opened", ("opening",)),
    Verb("zu", "machen", "macht", "gemacht", "hat", "close", "closed", ("opening",)),
    Verb("an", "machen", "macht", "gemacht", "hat", "turn on", "turned on", ("device",)),
    Verb("aus", "machen", "macht", "gemacht", "hat", "turn off", "turned off", ("device",)),
    Verb("an", "ziehen", "zieht", "gezogen", "hat", "put on", "put on", ("clothes",)),
    Verb("aus", "ziehen", "zieht", "gezogen", "hat", "take off", "took off", ("clothes",)),
    Verb("an", "rufen", "ruft", "gerufen", "hat", "call", "called", ("person",)),
)
GERMAN_VERBS = [verb.particle + verb.infinitive for verb in TRANSITIVE]
CLEAR_WITHOUT_OBJECT = tuple(verb for verb in TRANSITIVE if GERMAN_VERBS.count(verb.particle + verb.infinitive) == 1)
INTRANSITIVE = (
    Verb("", "schlafen", "schläft", "geschlafen", "hat", "sleep", "slept"),
    Verb("", "arbeiten", "arbeitet", "gearbeitet", "hat", "work", "worked"),
    Verb("", "tanzen", "tanzt", "getanzt", "hat", "dance", "danced"),
    Verb("ein", "schlafen", "schläft", "geschlafen", "ist", "fall asleep", "fell asleep"),
    Verb("auf", "stehen", "steht", "gestanden", "ist", "get up", "got up"),
)
WITH_RECIPIENT = (
    Verb("", "geben", "gibt", "gegeben", "hat", "give", "gave", ("text", "food", "clothes")),
    Verb("", "zeigen", "zeigt", "gezeigt", "hat", "show", "showed", ("text", "clothes")),
)
WITH_CLAUSE = (
    Verb("", "sagen", "sagt", "gesagt", "hat", "say", "said"),
    Verb("", "glauben", "glaubt", "geglaubt", "hat", "believe", "believed"),
    Verb("", "wissen", "weiß", "gewusst", "hat", "know", "knew"),
)
AUXILIARY_PLURAL = {"hat": "haben", "ist": "sind"}


@dataclass(frozen=True)
class Modal:
    singular: str
    plural: str
    english: str
    auxiliary: bool  # whether English needs no `do` with it


MODALS = (
    Modal("kann", "können", "can", True),
    Modal("wird", "werden", "will", True),
    Modal("will", "wollen", "want to", False),
    Modal("muss", "müssen", "have to", False),
)


@dataclass(frozen=True)
class Adverb:
    german: str
    english: str
    before_verb: bool  # whether it comes before the verb in English


NO_ADVERB = Adverb("", "", False)
PRESENT_ADVERBS = (Adverb("heute", "today", False), Adverb("jetzt", "now", False), Adverb("oft", "often", True))
PAST_ADVERBS = (Adverb("heute", "today", False), Adverb("gestern", "yesterday", False), Adverb("oft", "often", True))

# All take the dative.
PREPOSITIONS = (("in", "in", ("place",)), ("auf", "on", ("furniture",)), ("mit", "with", ANIMATE))
CONJUNCTIONS = (("weil", "because"), ("wenn", "when"), ("obwohl", "although"))

# case: {gender, or p for plural: form}; the dative plural never occurs
DEFINITE = {
    "nominative": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "accusative": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dative": {"m": "dem", "f": "der", "n": "dem"},
}
INDEFINITE = {
    "nominative": {"m": "ein", "f": "eine", "n": "ein", "p": ""},
    "accusative": {"m": "einen", "f": "eine", "n": "ein", "p": ""},
    "dative": {"m": "einem", "f": "einer", "n": "einem"},
}
DEFINITE_ENDINGS = {
    "nominative": {"m": "e", "f": "e", "n": "e", "p": "en"},
    "accusative": {"m": "en", "f": "e", "n": "e", "p": "en"},
    "dative": {"m": "en", "f": "en", "n": "en"},
}
INDEFINITE_ENDINGS = {
    "nominative": {"m": "er", "f": "e", "n": "es", "p": "e"},
    "accusative": {"m": "en", "f": "e", "n": "es", "p": "e"},
    "dative": {"m": "en", "f": "en", "n": "en"},
}
