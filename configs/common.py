"""Every key that a config has, each declared here once, with its default. Other configs start from this one."""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

# name: (d_model, ffn, heads, layers of each stack). Paper A (arXiv 2109.03939), section 4, and its code; tiny: Multi30k.
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
    """The common defaults: IWSLT14's small one-layer model at keep 0.5, on the toy language."""
    config = ConfigDict()
    config.task = "translation"  # or classification: model.decoder_layers 0, and data.labels
    config.seed = 1  # of the random layer, the scores, the order of batches and dropout

    config.model = model = ConfigDict()
    model.weights = (
        "one_layer"  # dense: fully weighted; one_layer: one random layer, L masks; multi_layer: L random layers
    )
    model.sharing = placeholder(str)  # of layers: weights (one_layer), none, or masks: L random layers under one mask
    model.selection = "magnitude"  # of |S|; or score (of S), threshold, sigmoid_threshold, signed_threshold
    model.keep = 0.5  # the fraction of the random weights that every mask keeps
    model.threshold = 0.0  # what S, its sigmoid or |S| must exceed, for the three selections of that name
    model.dynamic_scale = False  # masks times √(size / kept)
    model.score_init = "uniform"  # ±1/√fan_in; or constant, or constant_noisy: plus N(0, 1e-4)
    model.score_constant = 0.5
    model.embedding = placeholder(str)  # masked, frozen (fixed) or trained; none: masked, or trained if dense
    # What embedding_path names: text (`N d`, then `token v1 ... vd`), run (its folder), fairseq (.pt), roberta (safetensors).
    model.embedding_source = "text"
    model.embedding_path = ""  # pre-trained tables, which stay fixed; {language} in it is replaced
    model.embedding_vocabulary = ""  # fairseq's dict.{language}.txt, roberta's vocab.json; empty: that beside the file
    model.shared_embedding = False  # one table for source, target and output; needs data.joined_vocabulary
    model.positions = "sinusoidal"  # or, of a classifier, frozen: a table from model.embedding_path, as RoBERTa's
    model.max_positions = 512  # of that table
    model.embedding_norm = False  # of a classifier: LayerNorm of embedding plus position
    model.activation = "relu"  # of feed-forward networks; or gelu
    model.norm = placeholder(str)  # plain, affine or frozen (affine, fixed); none: plain, or affine if dense
    model.bias = placeholder(bool)  # none: no, or yes if dense
    model.share_bias = False  # one for all layers of a stack, the norms' shifts among them
    model.share_norm_scale = placeholder(bool)  # none: by the preset
    model.dropout = 0.1  # after embeddings, attention blocks and feed-forward blocks
    model.attention_dropout = 0.0
    model.activation_dropout = 0.0
    model.dtype = "float32"  # of the computation; bfloat16 on accelerators. Scores, softmax and loss stay float32
    model.remat = False  # compute a layer's inner values again in the backward pass instead of keeping them
    model.init_preset = (
        "paper"  # paper: what the text says; reference: what its code does; corrected. Decides what is none below
    )
    model.init_scheme = "kaiming_uniform"  # kaiming_ or xavier_ uniform or normal, signed_constant, unsigned_constant
    model.init_attention = placeholder(str)  # scheme, or xavier: the attention's matrices, whatever init_scheme says
    model.scale_by_keep = placeholder(bool)  # widen the draws by √(1/keep)
    model.zero_pad_row = placeholder(bool)  # of tables
    model.init_qk_gain = placeholder(float)  # of query and key matrices
    set_size(config, "small")

    config.data = data = ConfigDict()
    data.source = "toy"  # the embedded language; text: {directory}/{name}.{language}, plain or .gz; fairseq; tfds;
    # labelled: {directory}/{name} with labels and texts
    data.tfds_name = ""  # of a data set under data.directory: wmt14_translate/de-en, or, with data.labels, glue/qqp
    data.labels = ""  # qqp, mnli, snli, rte, sst2 or cola: what labelled texts are asked
    data.seed = 1  # of the toy language's sentences
    data.toy_train = 20_000
    data.toy_valid = 500
    data.toy_test = 500
    data.source_language = "de"
    data.target_language = "en"
    data.directory = ""
    data.train = "train"
    data.valid = "valid"
    data.tests = ("test",)
    data.store = ""  # a folder that keeps the training text as ids, made once from text and options
    data.tokenize = False  # Moses, on raw text
    data.normalize = True  # Moses' normalisation of punctuation, before tokenize
    data.split_hyphens = False  # tokenize makes `a @-@ b` of `a-b`
    data.lowercase = False
    data.bpe_merges = 0  # learn so many merges on both sides of the training text
    data.bpe_codes = ""  # or apply those of this file
    data.bpe_kind = "subword-nmt"  # or byte-level: bpe_codes is the merges.txt of RoBERTa (or GPT-2)
    data.prepared = False  # the files are what tokenize, lowercase and bpe_codes make: do these to new text alone
    data.joined_vocabulary = False
    data.vocabulary = ""  # a vocab.json as RoBERTa has it, taken as the source's vocabulary (if joined, as both sides')
    data.min_count = 1
    data.max_length = 175  # training pairs with a longer side are left out, and counted; labelled texts are cut
    data.max_tokens = 4096  # padded tokens of the longer side in an update, all micro-batches together
    data.buckets = 6  # padded lengths

    config.optim = optim = ConfigDict()
    optim.lr = 5e-4
    optim.schedule = "inverse_sqrt"  # or cosine or linear, down to 0 at the last update
    optim.warmup = 4000
    optim.warmup_init_lr = 0.0
    optim.b1 = 0.9
    optim.b2 = 0.98
    optim.eps = 1e-8
    optim.weight_decay = 0.0
    optim.clip = 0.0  # of the gradient's norm; 0: none
    optim.label_smoothing = 0.1
    optim.accumulate = 1  # micro-batches of an update

    config.train = train = ConfigDict()
    train.updates = 0  # at most so many; 0: no limit
    train.epochs = 0
    train.evaluate_every = 0  # updates between evaluations, each with a checkpoint; 0: once an epoch
    train.patience = 0  # evaluations without a better score before training stops; 0: never
    train.select = "bleu"  # of valid, what the best checkpoint has: bleu (tokenised), nll, accuracy, f1 or matthews
    train.log_every = 50
    train.keep_last = 1  # checkpoints, besides the best; --checkpoint=average:N needs N of them
    train.keep_best = 1  # checkpoints of the best validation scores; --checkpoint=average-best:N needs N of them
    train.keep_every = 0  # evaluations between checkpoints that stay for good

    config.evaluation = evaluation = ConfigDict()
    evaluation.beam = 5
    evaluation.valid_beam = 1  # while training; 0: no validation BLEU
    evaluation.length_penalty = 1.0
    evaluation.max_length_a = 1.2  # at most a times the source's padded length plus b tokens
    evaluation.max_length_b = 10
    evaluation.max_tokens = 4096
    evaluation.buckets = 4
    return config


def set_size(config: ConfigDict, name: str) -> None:
    """Gives the model the widths and depths of the size `name`."""
    model = config.model
    model.d_model, model.ffn, model.heads, layers = SIZES[name]
    model.encoder_layers = model.decoder_layers = layers
