// Datasets and their batches.
#pragma once

#include "clnet/data/arrays.h"     // IWYU pragma: export
#include "clnet/data/audio.h"      // IWYU pragma: export
#include "clnet/data/batches.h"    // IWYU pragma: export
#include "clnet/data/dataset.h"    // IWYU pragma: export
#include "clnet/data/images.h"     // IWYU pragma: export
#include "clnet/data/mixing.h"     // IWYU pragma: export
#include "clnet/data/numpy.h"      // IWYU pragma: export
#include "clnet/data/samplers.h"   // IWYU pragma: export
#include "clnet/data/table.h"      // IWYU pragma: export
#include "clnet/data/tokenizer.h"  // IWYU pragma: export
