/* image_decoder.h — ONNX's ImageDecoder as an operator that the program brings: the runtime knows no formats. */
#ifndef LNT_CLI_PICTURES_IMAGE_DECODER_H
#define LNT_CLI_PICTURES_IMAGE_DECODER_H

#include "base/linnet_types.h"

extern const lnt_custom_op lnt_image_decoder;

#endif
