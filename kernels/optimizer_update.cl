// One step of an optimizer for up to eight parameters: reads values, gradients and the optimizer's state, writes the new ones.
// RULE chooses the formula, so that the program of one optimizer holds no other's code. Formulas: PyTorch's documentation of
// torch.optim; rates and bias corrections are computed in double on the host. VW above 1: work-items take chunks, as vectors.
#include "vector.clh"

#define SGD 0
#define SGD_MOMENTUM 1
#define ADAM 2
#define RMSPROP 3
#define RMSPROP_MOMENTUM 4

// Decoupled decay shrinks the parameter (AdamW), the other kind joins the gradient.
#define BEGIN(REAL, GET, k)                 \
  const REAL p = GET(p##k, i);              \
  const REAL slope = GET(g##k, i) + decay * p; \
  REAL value = p * shrink;

#if RULE == SGD
#define FORMULA(REAL, GET, PUT, k) value -= rate * slope;
#elif RULE == SGD_MOMENTUM
#define FORMULA(REAL, GET, PUT, k)                                                  \
  const REAL momentum = beta1 * GET(m##k, i) + slope;                               \
  value -= rate * (nesterov ? slope + beta1 * momentum : momentum);                 \
  PUT(new_m##k, i, momentum);
#elif RULE == ADAM
#define FORMULA(REAL, GET, PUT, k)                                                  \
  const REAL mean = beta1 * GET(m##k, i) + (1.0f - beta1) * slope;                  \
  const REAL mean_square = beta2 * GET(v##k, i) + (1.0f - beta2) * slope * slope;   \
  value -= rate * mean / (sqrt(mean_square) * second_scale + eps);                  \
  PUT(new_m##k, i, mean);                                                           \
  PUT(new_v##k, i, mean_square);
#else
#define BEGIN_RMSPROP(REAL, GET, PUT, k)                                            \
  const REAL mean_square = beta2 * GET(m##k, i) + (1.0f - beta2) * slope * slope;   \
  const REAL scaled = slope / (sqrt(mean_square) + eps);                            \
  PUT(new_m##k, i, mean_square);
#if RULE == RMSPROP
#define FORMULA(REAL, GET, PUT, k)    \
  BEGIN_RMSPROP(REAL, GET, PUT, k)    \
  value -= rate * scaled;
#else
#define FORMULA(REAL, GET, PUT, k)                     \
  BEGIN_RMSPROP(REAL, GET, PUT, k)                     \
  const REAL momentum = beta1 * GET(v##k, i) + scaled; \
  value -= rate * momentum;                            \
  PUT(new_v##k, i, momentum);
#endif
#endif

#define STEP(REAL, GET, PUT, k)    \
  {                                \
    BEGIN(REAL, GET, k)            \
    FORMULA(REAL, GET, PUT, k)     \
    PUT(new_p##k, i, value);       \
  }

// The work-items of tensor k come after those of the tensors before it.
#if VW > 1
#define TENSOR(k)                                                 \
  if (item < items##k) {                                          \
    const int end = min(item * CHUNK + CHUNK, n##k);              \
    int i = item * CHUNK;                                         \
    for (; i + VW <= end; i += VW) STEP(VFLOAT, VLOAD, VSTORE, k) \
    SELDOM for (; i < end; ++i) STEP(float, LOAD, STORE, k)       \
    return;                                                       \
  }                                                               \
  item -= items##k;
#else
#define TENSOR(k)                   \
  if (item < items##k) {            \
    const int i = item;             \
    STEP(float, LOAD, STORE, k)     \
    return;                         \
  }                                 \
  item -= items##k;
#endif

#if RULE == SGD
#define STATE(k)
#elif RULE == ADAM || RULE == RMSPROP_MOMENTUM
#define STATE(k) IN(m##k), OUT(new_m##k), IN(v##k), OUT(new_v##k),
#else
#define STATE(k) IN(m##k), OUT(new_m##k),
#endif
#define PARAMETERS(k) IN(p##k), IN(g##k), OUT(new_p##k), STATE(k) const int n##k, const int items##k,

kernel void optimizer_update(PARAMETERS(0)
#if COUNT > 1
                             PARAMETERS(1)
#endif
#if COUNT > 2
                             PARAMETERS(2)
#endif
#if COUNT > 3
                             PARAMETERS(3)
#endif
#if COUNT > 4
                             PARAMETERS(4)
#endif
#if COUNT > 5
                             PARAMETERS(5)
#endif
#if COUNT > 6
                             PARAMETERS(6)
#endif
#if COUNT > 7
                             PARAMETERS(7)
#endif
                             SCALAR(rate), SCALAR(shrink), SCALAR(second_scale), const float decay, const float beta1,
                             const float beta2, const float eps, const int nesterov) {
  int item = (int)get_global_id(0);
  TENSOR(0)
#if COUNT > 1
  TENSOR(1)
#endif
#if COUNT > 2
  TENSOR(2)
#endif
#if COUNT > 3
  TENSOR(3)
#endif
#if COUNT > 4
  TENSOR(4)
#endif
#if COUNT > 5
  TENSOR(5)
#endif
#if COUNT > 6
  TENSOR(6)
#endif
#if COUNT > 7
  TENSOR(7)
#endif
}
