// Everything that clnet offers, except the caller's own OpenCL objects (clnet/opencl.h).
#pragma once

#include "clnet/autocast.h"
#include "clnet/autograd.h"
#include "clnet/data.h"
#include "clnet/debug.h"
#include "clnet/device.h"
#include "clnet/dtype.h"
#include "clnet/error.h"
#include "clnet/io.h"
#include "clnet/kernel.h"
#include "clnet/models.h"
#include "clnet/nn.h"
#include "clnet/ops.h"
#include "clnet/optim.h"
#include "clnet/shape.h"
#include "clnet/tensor.h"
#include "clnet/train.h"
