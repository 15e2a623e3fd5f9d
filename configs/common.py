"""Declares every config key once, with its default. Other configs start from this one."""

from ml_collections import ConfigDict, FieldReference
from ml_collections.config_dict import placeholder

# name: (d_model, ffn, heads, layers of each stack), from paper A (arXiv 2109.03939), section 4, and its code. `tiny` is for Multi30k.
SIZES = {
    "tiny": (128, 256, 4, 4),
    "small": (512, 1024, 4, 6),
    "base": (512, 2048, 8, 6),
    "wide": (1024, 2048, 4, 6),
    "wider": (1024, 4096, 16, 6),
    "deep": (512, 1024, 4, 12),
    "deeper": (512, 2048, 8, 12),
}


def get_config() -> ConfigDict:
    """Returns the common defaults: IWSLT14's small one-layer model at keep 0.5, on the toy language."""
    config = ConfigDict()
    # translation; classification, which needs model.decoder_layers=0 and data.labels; causal_lm, which needs model.encoder_layers=0, or
    # masked_lm, which needs model.decoder_layers=0; both need data.source=plain or enwik8
    config.task = "translation"
    config.seed = 1  # for the random layer, the scores, the order of batches and dropout
    config.model = _model()
    config.data = _data()
    config.optim = _optim()
    config.mesh = _mesh()
    config.train = _train()
    config.evaluation = _evaluation()
    set_size(config, "small")
    return config


def set_random_weights(model: ConfigDict) -> None:
    """Sets the random weights under which masks learned fastest in post-LN models; docs/results.md has the measurements."""
    model.update(init_scheme="xavier_uniform", init_attention="xavier", init_embedding="signed_constant")


def set_signs(model: ConfigDict) -> None:
    """Sets what did best in small files (configs/multi30k_best.py): bits of masks are signs; norms, biases and gains are trained."""
    model.update(selection="sign", keep=1.0)
    model.update(norm="affine", bias=True, gains="columns", vector_precision="int8")


def set_one_size(model: ConfigDict) -> None:
    """Sets random weights of one size, plus or minus Xavier's deviation; docs/results.md compares them with random sizes."""
    model.update(init_scheme="xavier_constant", init_attention="xavier_constant")


def _model() -> ConfigDict:
    """The network, and what is random in it."""
    model = ConfigDict()
    # dense: fully weighted; one_layer: one random layer, L masks; multi_layer: L random layers, L masks
    model.weights = "one_layer"
    # layers share weights (one_layer), none, or masks (L random layers, one mask). In dense models none, or weights: one trained layer
    model.sharing = placeholder(str)
    # by |S|; or score (by S), threshold, sigmoid_threshold, signed_threshold; or sign: all weights stay, under the signs of S (keep=1);
    # or module:Class, a class of your own (examples/own_selection.py)
    model.selection = "magnitude"
    model.keep = 0.5  # the fraction of the random weights that every mask keeps
    model.threshold = 0.0  # for the three threshold selections: S, its sigmoid or |S| must exceed it
    model.dynamic_scale = False  # multiply masks by √(size / kept)
    # columns: a trained factor for each of the columns (outputs) of the masked matrices of every layer; or none
    model.gains = "none"
    # The rank of a trained matrix beside each of these masks, which is stored as trained_precision says; 0: none
    model.adapter_rank = 0
    model.embedding = placeholder(str)  # masked, frozen (fixed) or trained; none: masked, or trained if dense
    # The kind of embedding_path: text (`N d`, then `token v1 ... vd`), run (a run folder), fairseq (.pt), roberta (safetensors).
    model.embedding_source = "text"
    model.embedding_path = ""  # pre-trained tables, which stay fixed; {language} in it is replaced
    model.embedding_vocabulary = ""  # fairseq's dict.{language}.txt, roberta's vocab.json; empty: the one next to it
    model.shared_embedding = False  # one table for source, target and output; needs data.joined_vocabulary
    # For classifiers and language models also learned: a trained table, as in RoBERTa; or frozen: that of model.embedding_path.
    model.positions = "sinusoidal"
    model.max_positions = 512  # the tokens for which that table has positions
    model.embedding_norm = False  # for classifiers and masked language models: LayerNorm of embedding plus position
    model.activation = "relu"  # in feed-forward networks; gelu, or gelu_tanh
    # plain, affine, frozen (affine, fixed), rms (RMSNorm) or rms_plain (without a scale); none: plain, or affine if dense
    model.norm = placeholder(str)
    model.norm_epsilon = 1e-5  # added to the variance (the mean square in RMSNorm) under the root of all norms
    model.bias = placeholder(bool)  # none: no biases, or biases if dense
    # all layers of a stack share the scales of LayerNorm; none: the preset decides
    model.share_norm_scale = placeholder(bool)
    model.dropout = 0.1  # after embeddings, attention blocks and feed-forward blocks
    model.attention_dropout = 0.0
    model.activation_dropout = 0.0
    model.head_dropout = 0.0  # of a classifier: before both layers of its head, as in RoBERTa
    # For the computation; bfloat16 for accelerators, and for CPUs with instructions for it, where an update takes about half the time
    # (docs/speed.md). Scores, softmax and loss stay float32.
    model.dtype = "float32"
    # float32, bfloat16, int8 or int4 (these two with a scale for each row): how a ticket holds the trained and fixed matrices (tables and
    # heads; of dense models all), and training sees them so already. The gradient passes straight through the rounding. Masks have a bit.
    model.trained_precision = "float32"
    # The same for vectors, with one scale for each: biases, scales and shifts of norms, gains
    model.vector_precision = "float32"
    # Recompute a layer's inner values in the backward pass instead of storing them (where layers repeat)
    model.remat = False
    # paper: as in the paper's text; reference: as in the paper's code. It decides the keys that are none, the row of pad in tables (zero in
    # the code) and the scale of the rows of embedding_path.
    model.init_preset = "paper"
    # kaiming_ or xavier_ uniform or normal; signed_, xavier_ or unsigned_constant
    model.init_scheme = "kaiming_uniform"
    # scheme: init_scheme for attention too; xavier: always xavier_uniform; xavier_constant: plus or minus its deviation
    model.init_attention = placeholder(str)
    model.init_embedding = ""  # another scheme than init_scheme for random tables, as long as they are not trained
    model.scale_by_keep = placeholder(bool)  # multiply the random weights by √(1/keep); off with dynamic_scale
    # The layers of each stack: a number (set by the size), or a letter for each layer: L (updatable), R (reservoir: random, never
    # updated), S (the shared random layer under a mask of its own), for instance LRLRL. 4L+3R puts 3 reservoirs between 4 layers: LRLRLRL.
    # A number stands for L in a dense model and for S in a masked one.
    model.encoder_layers = FieldReference(6, field_type=object)
    model.decoder_layers = FieldReference(6, field_type=object)
    # modern: RMSNorm, rotary positions, SwiGLU (a third matrix of model.ffn) and no biases; it needs model.norm_position=pre.
    model.block = "paper"
    # With modern: pair i of the h features of a head turns by rotary_base^(-2i / h) at each position.
    model.rotary_base = 10_000.0
    model.norm_position = "post"  # LayerNorm after each block, or pre: before it, as in Reservoir Transformers
    # What a reservoir is: transformer (a whole layer), ffn, gru or conv. gru and conv read both sides, but the past alone in decoders.
    model.reservoir = "transformer"
    # In training, the probability that a layer is left out for a whole batch. The only layer of a stack always stays.
    model.layerdrop = 0.0
    return model


def _data() -> ConfigDict:
    """The text, and how it becomes ids and batches."""
    data = ConfigDict()
    # toy: the embedded language; text: {directory}/{name}.{language}, plain or .gz; fairseq: a data-bin folder; tfds: a data set of
    # TensorFlow Datasets; tsv: {directory}/{name} with a column for each language (tabs, CSV or JSON lines); labelled:
    # {directory}/{name} with labels and texts; plain: text without sides for language models, in the files {directory}/{name}, plain or
    # .gz (several names with commas between them); enwik8: the file enwik8, plain or .gz
    data.source = "toy"
    # A data set in data.directory, or in TFDS's own folder: wmt14_translate/de-en, or, with data.labels, glue/qqp.
    data.tfds_name = ""
    # The task of labelled texts (qqp, mnli, snli, rte, sst2 or cola), or labels of your own: entails,neutral, or 0:neutral,1:entails
    # for files with numbers, or from_train for those of the training text. Your own also need data.columns.
    data.labels = ""
    data.seed = 1  # for the toy language's sentences
    data.toy_train = 20_000
    data.toy_valid = 500
    data.toy_test = 500
    data.source_language = "de"
    data.target_language = "en"
    data.directory = ""
    # For text and tsv also several corpora with commas between them, which become one text: data.train=one,two
    data.train = "train"
    data.mix = ""  # their shares, for instance 2:1; a corpus that is smaller than its share is repeated. Empty: each corpus once
    data.valid = "valid"
    data.tests = ("test",)
    # For tsv: the columns of source and target; for labelled: of one or two texts, and then of the label. Names of a header or of JSON
    # keys (de,en), or numbers in files without a header (1,2). Several corpora may have their own, with ; between them (de,en;1,2); one
    # without columns is a pair of files.
    data.columns = ""
    data.delimiter = ","  # between the values of a .csv file
    # The share of the training text's lines that become the parts named valid and test, each; of plain text, its last two such shares.
    data.held_out = 0.0
    # The tokens of plain text; or bpe, with bpe_kind=byte-level and bpe_merges or bpe_codes
    data.unit = "bytes"
    data.block = 512  # tokens of the context of a language model, and of every row of its batches
    data.mask_share = 0.15  # of a masked language model: the share of the tokens that are to be predicted
    data.store = ""  # a folder that stores the training text as ids, made once from text and options
    data.tokenize = False  # apply Moses' tokenisation to raw text
    data.normalize = True  # apply Moses' normalisation of punctuation before tokenize
    data.split_hyphens = False  # tokenize turns `a-b` into `a @-@ b`
    data.lowercase = False
    data.bpe_merges = 0  # learn this many merges on both sides of the training text, or on plain text
    data.bpe_codes = ""  # or apply the merges of this file
    # Pieces of words. metaspace: pieces that hold their spaces, so that every text comes back as it was; it needs no tokenize. byte-level:
    # bpe_codes is the merges.txt of RoBERTa (or GPT-2).
    data.bpe_kind = "subword-nmt"
    # The files are already tokenised, lower-cased and split by BPE as these keys say; only new text needs these steps.
    data.prepared = False
    # The files were prepared elsewhere, and this undoes it: subword-nmt, sentencepiece or byte-level; moses; none; or two with a comma
    # between them: subword-nmt,moses. Empty: the keys above say it; if they say nothing of prepared text, subword-nmt,moses.
    data.undo = ""
    data.joined_vocabulary = False
    data.vocabulary = ""  # a vocab.json in RoBERTa's format: the vocabulary of the source, or of both sides if joined
    # Tokens. Training pairs with a longer side are left out and counted; labelled texts are cut. For these, 0 lets the training text
    # decide: so many that 95 of 100 texts are whole, and at most 512.
    data.max_length = 175
    # Distillation: a run's folder or a ticket. By sentences, it translates the source side of the training text once (beam 5), and the run
    # learns from these translations in the place of the references; with teacher_mix=both from both. With
    # teacher_mix=references it translates nothing. By words, in all tasks: train.distil. docs/distillation.md
    data.teacher = ""
    data.teacher_mix = "translations"
    # Or: a file of such translations, one for each line of the training text, prepared as that is.
    data.translations = ""
    data.max_tokens = 4096  # padded tokens of the longer side in an update, over all micro-batches
    data.buckets = 6  # the number of padded lengths
    return data


def _optim() -> ConfigDict:
    """Adam, its rate, and what is trained."""
    optim = ConfigDict()
    optim.lr = 5e-4  # none: follows from the model's width
    optim.schedule = "inverse_sqrt"  # or cosine or linear, which fall to 0 at the last update
    optim.warmup = 4000  # updates; none: a twentieth of the run
    optim.warmup_init_lr = 0.0
    optim.b1 = 0.9
    optim.b2 = 0.98
    optim.eps = 1e-8
    optim.weight_decay = 0.0
    optim.clip = 0.0  # the largest norm of the gradient; 0: no clipping
    optim.label_smoothing = 0.1
    # Signs of random weights are tanh(score / T) in training; T falls from so many steps of optim.lr to 0. 0: they are signs from the
    # beginning, as the masks of the paper are. docs/results.md
    optim.softness = 0.0
    optim.accumulate = 1  # micro-batches per update

    # What is trained, and what is frozen: names of parts, separated by commas; empty: all, and nothing. A name is a word or words joined by
    # dots: encoder, decoder, attention, ffn, norms, masks, embeddings, head, or a layer: freeze=encoder.1,decoder.ffn. docs/reservoirs.md
    optim.train_only = ""
    optim.freeze = ""
    return optim


def _mesh() -> ConfigDict:
    """How devices share out the work."""
    mesh = ConfigDict()
    # Devices share out the work: those along mesh.data the rows of a batch, those along mesh.model the width of the layers. Their product
    # is the number of devices; -1 takes what the other key leaves. Scores and moments lie on all devices in parts.
    mesh.data = -1
    mesh.model = 1
    return mesh


def _train() -> ConfigDict:
    """How long a run is, and what it keeps."""
    train = ConfigDict()
    train.updates = 0  # the most updates; 0: no limit; a run needs updates or epochs
    train.epochs = 0  # the most epochs; 0: no limit
    # The minutes that the whole run may take, from reading the text to the scores of the test sets: they decide train.updates, from the
    # speed of a hundred updates that are thrown away. train.epochs may end the run earlier. 0: train.updates is taken as it is
    train.minutes = 0.0
    # The most bytes of the ticket: they decide model.d_model and model.ffn. 0: these are taken as they are
    train.bytes = 0
    # Updates between evaluations, each with a checkpoint; 0: once per epoch; none: 10 to 20 times in a run
    train.evaluate_every = 0
    train.patience = 0  # evaluations without a better score before training stops; 0: never stop
    # The validation score that selects the best checkpoint: bleu (tokenised), nll, accuracy, f1 or matthews. It is nll where the
    # evaluations have no such score: bleu needs a reference of four tokens, and evaluation.valid_beam.
    train.select = "bleu"
    train.log_every = 50  # updates
    train.check_memory = True  # refuse a run that is estimated to need more memory than there is; False: only warn
    # Gradients through reservoirs: off (computed), identity (passed on unchanged, which skips the reservoir's backward pass) or policy
    # (proposed by a small network that learns by reinforcement, after optim.warmup updates with true gradients).
    train.backskip = "off"
    # The folder of a run whose best checkpoint this run begins with, as far as it fits; optim.train_only says what is trained then. The
    # text is read in that run's vocabularies. docs/fine-tuning.md
    train.init_from = ""
    # init_from, and also the model of that run (all keys of model), its seed and how it reads text; keys of the command line still count
    train.model_of = ""
    # Distillation by words: the share of the loss that is cross entropy with the probabilities of data.teacher, from 0 (none) to 1.
    # docs/distillation.md
    train.distil = 0.0
    # A checkpoint after so many minutes without one, also between evaluations; 0: only at evaluations
    train.checkpoint_minutes = 10.0
    train.keep_last = 1  # the newest checkpoints to keep, besides the best; --checkpoint=average:N needs N of them
    # On GPUs: programs without loops over layers, which are faster and compile longer; auto: from 2,000 updates on, or with minutes
    train.unroll = "auto"
    return train


def _evaluation() -> ConfigDict:
    """How a trained model is scored and used."""
    evaluation = ConfigDict()
    evaluation.beam = 5
    evaluation.valid_beam = 1  # beam of validation during training; 0: no validation BLEU
    evaluation.length_penalty = 1.0
    evaluation.max_length_a = 1.2  # a translation has at most a · (tokens of its source, eos included) + b tokens
    evaluation.max_length_b = 10
    evaluation.tokenize = ""  # sacreBLEU's tokenizer: 13a, zh, char, intl, ja-mecab, ...; empty: by the target language
    evaluation.stride = 256  # of a language model: tokens between two windows of data.block tokens, each scored once
    # Of a language model: tokens of the validation text that are scored in training; 0: all
    evaluation.valid_tokens = 0
    evaluation.temperature = 1.0  # of sampling: divides the logits; 0: always the most probable token
    evaluation.sample_length = 200  # tokens that --mode=generate writes for each prompt
    evaluation.sample_seed = 1  # of the random numbers of --mode=generate
    # Padded tokens of a batch. A translation on an accelerator takes up to 16 times as many, as far as a quarter of its memory holds them.
    evaluation.max_tokens = 4096
    evaluation.buckets = 4
    return evaluation


def set_size(config: ConfigDict, name: str) -> None:
    """Sets the widths and depths of the model to those of the size `name`."""
    model = config.model
    model.d_model, model.ffn, model.heads, layers = SIZES[name]
    model.encoder_layers = model.decoder_layers = layers
