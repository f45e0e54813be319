// Operations on tensors. Every function builds graph and returns at once; shapes and dtypes are checked at the call (ShapeError,
// DtypeError). Names, options and formulas are PyTorch's unless a comment says otherwise; image tensors are NCHW. Gradients are
// defined for every operation with floating inputs and outputs, except where a comment says otherwise.
#pragma once

#include "clnet/ops/conv.h"
#include "clnet/ops/elementwise.h"
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
