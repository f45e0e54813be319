// Operations on tensors. Every function builds graph and returns at once; the call checks shapes and dtypes (ShapeError,
// DtypeError) and throws Error for an undefined tensor. Names, options and formulas are PyTorch's, and image tensors are NCHW;
// comments give the exceptions. Operations with floating inputs and outputs have gradients, unless a comment says otherwise.
#pragma once

#include "clnet/ops/attention.h"
#include "clnet/ops/conv.h"
#include "clnet/ops/elementwise.h"
#include "clnet/ops/image.h"
#include "clnet/ops/index.h"
#include "clnet/ops/loss.h"
#include "clnet/ops/matmul.h"
#include "clnet/ops/norm.h"
#include "clnet/ops/options.h"
#include "clnet/ops/pool.h"
#include "clnet/ops/random.h"
#include "clnet/ops/recurrent.h"
#include "clnet/ops/reduce.h"
#include "clnet/ops/shape.h"
