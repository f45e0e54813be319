// Optimizers with PyTorch's formulas, user-defined rules, learning-rate schedules, gradient clipping, averages of weights.
#pragma once

#include "clnet/optim/adam.h"
#include "clnet/optim/adaptive.h"
#include "clnet/optim/clip.h"
#include "clnet/optim/ema.h"
#include "clnet/optim/find_rate.h"
#include "clnet/optim/lbfgs.h"
#include "clnet/optim/make.h"
#include "clnet/optim/optimizer.h"
#include "clnet/optim/rule.h"
#include "clnet/optim/schedule.h"
#include "clnet/optim/scheduler.h"
#include "clnet/optim/sgd.h"
