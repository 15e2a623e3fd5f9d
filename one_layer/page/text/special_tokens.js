/** The ids of the special types: `one_layer.data.special_tokens`. */
export const BOS = 0;
export const PAD = 1;
export const EOS = 2;
export const UNK = 3;
