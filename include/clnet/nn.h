// Layers and modules with named parameters and buffers. Names, defaults and initial values are PyTorch's.
#pragma once

#include "clnet/nn/activation.h"
#include "clnet/nn/adaptive_softmax.h"
#include "clnet/nn/attention.h"
#include "clnet/nn/conv.h"
#include "clnet/nn/image.h"
#include "clnet/nn/init.h"
#include "clnet/nn/linear.h"
#include "clnet/nn/loss.h"
#include "clnet/nn/module.h"
#include "clnet/nn/norm.h"
#include "clnet/nn/pad.h"
#include "clnet/nn/parameter.h"
#include "clnet/nn/pool.h"
#include "clnet/nn/recurrent.h"
#include "clnet/nn/transformer.h"
#include "clnet/ops.h"
