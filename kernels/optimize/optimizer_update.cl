// One step of an optimizer for up to 16 parameters of one dtype: reads values, gradients and the optimizer's state, writes the
// new ones. RULE chooses the formula, so that the program of one optimizer holds no other's code. Formulas: PyTorch's documentation
// of torch.optim; rates and bias corrections are computed in double on the host, or, RATE_COMPUTED and SECOND_SCALE_COMPUTED, were
// computed on the device, where GATED keeps all values of a step that is not made. beta1_rest and beta2_rest are what is left to
// 1. VW above 1: work-items take chunks, as vectors. NONTEMPORAL_STORES: new values are stored past the caches,
// NONTEMPORAL_STATES: the state, too, which mostly lies where the old one was. LANES above 1: so many elements each, which are loaded and stored as one.
#include "vector.clh"
#if LANES > 1
#include "lanes.clh"
#endif

#define SGD 0
#define SGD_MOMENTUM 1
#define ADAM 2
#define RMSPROP 3
#define RMSPROP_MOMENTUM 4

// Decoupled decay shrinks the parameter (AdamW), the other kind joins the gradient. The state is f32.
#define BEGIN(REAL, GET)                           \
  const REAL value_ = GET(p, p0, i);               \
  const REAL slope = GET(g, g0, i) + decay * value_; \
  REAL value = value_ * shrink;

// What is stored in place of a value.
#ifdef GATED
#define NEXT(value, before) (finite ? (value) : (before))
#else
#define NEXT(value, before) (value)
#endif

// A step without momentum leaves what was summed for it as it is.
#define NEXT_BUFFER(momentum, before) NEXT(beta1 > 0 ? (momentum) : (before), before)

// All is read before anything is written: a new state may lie where an old one does.
#if RULE == SGD
#define FORMULA(REAL, GET, PUT) value -= rate * slope;
#elif RULE == SGD_MOMENTUM
#define FORMULA(REAL, GET, PUT)                                     \
  const REAL m_ = GET(m, m0, i);                                    \
  const REAL momentum = beta1 * m_ + slope;                         \
  value -= rate * (nesterov ? slope + beta1 * momentum : momentum); \
  PUT(new_m, new_m0, i, NEXT_BUFFER(momentum, m_));
#elif RULE == ADAM
#define FORMULA(REAL, GET, PUT)                                           \
  const REAL m_ = GET(m, m0, i), v_ = GET(v, v0, i);                      \
  const REAL mean = beta1 * m_ + beta1_rest * slope;                      \
  const REAL mean_square = beta2 * v_ + beta2_rest * slope * slope;       \
  value -= rate * mean / (sqrt(mean_square) * second_scale + eps);        \
  PUT(new_m, new_m0, i, NEXT(mean, m_));                                  \
  PUT(new_v, new_v0, i, NEXT(mean_square, v_));
#elif RULE == RMSPROP
#define FORMULA(REAL, GET, PUT)                                         \
  const REAL m_ = GET(m, m0, i);                                        \
  const REAL mean_square = beta2 * m_ + beta2_rest * slope * slope;     \
  value -= rate * (slope / (sqrt(mean_square) + eps));                  \
  PUT(new_m, new_m0, i, NEXT(mean_square, m_));
#else
#define FORMULA(REAL, GET, PUT)                                         \
  const REAL m_ = GET(m, m0, i), v_ = GET(v, v0, i);                    \
  const REAL mean_square = beta2 * m_ + beta2_rest * slope * slope;     \
  const REAL momentum = beta1 * v_ + slope / (sqrt(mean_square) + eps); \
  value -= rate * momentum;                                             \
  PUT(new_m, new_m0, i, NEXT(mean_square, m_));                         \
  PUT(new_v, new_v0, i, NEXT_BUFFER(momentum, v_));
#endif

// From and to pointers, by the storage type of the first parameter's buffers, which is that of all.
#define GET_ONE(pointer, like, i) CLNET_CAT(CLNET_LOAD_, TYPE_##like)(pointer, i)
#define PUT_ONE(pointer, like, i, value) CLNET_CAT(CLNET_STORE_, TYPE_##like)(pointer, i, value)
#define GET_VECTOR(pointer, like, i) CLNET_CAT(CLNET_VLOAD_, TYPE_##like)(pointer, i)
#define PUT_VECTOR(pointer, like, i, value) CLNET_CAT(CLNET_VSTORE_, TYPE_##like)(pointer + (i), value)
#define NONTEMPORAL_VECTOR(pointer, like, i, value) CLNET_CAT(CLNET_NONTEMPORAL_VSTORE_, TYPE_##like)(pointer + (i), value)
#define GET_LANE(pointer, like, i) pointer##_lanes[i]
#define PUT_LANE(pointer, like, i, value) pointer##_lanes[i] = (value)
#define NEW_LANES(pointer, like) float pointer##_lanes[LANES];
#define READ_LANES(pointer, like) \
  NEW_LANES(pointer, like)        \
  CLNET_CAT(CLNET_LOAD_LANES_, TYPE_##like)(pointer + first, pointer##_lanes);
#define WRITE_LANES(pointer, like) CLNET_CAT(CLNET_STORE_LANES_, TYPE_##like)(pointer + first, pointer##_lanes);
#define NO_LANES(pointer, like)

#define STEP(REAL, GET, PUT, PUT_STATE)         \
  {                                             \
    BEGIN(REAL, GET)                            \
    FORMULA(REAL, GET, PUT_STATE)               \
    PUT(new_p, new_p0, i, NEXT(value, value_)); \
  }

#if RULE == SGD
#define STATE(k)
#define TAKE_STATE(k)
#define STATE_OFFSETS(k) 0
#define FOR_STATE(DO_OLD, DO_NEW)
#elif RULE == ADAM || RULE == RMSPROP_MOMENTUM
#define STATE(k) IN_SHARED(m##k), OUT_SHARED(new_m##k), IN_SHARED(v##k), OUT_SHARED(new_v##k),
#define TAKE_STATE(k) m = PTR(m##k), new_m = PTR(new_m##k), v = PTR(v##k), new_v = PTR(new_v##k);
#define STATE_OFFSETS(k) (m##k##_offset | new_m##k##_offset | v##k##_offset | new_v##k##_offset)
#define FOR_STATE(DO_OLD, DO_NEW) DO_OLD(m, m0) DO_NEW(new_m, new_m0) DO_OLD(v, v0) DO_NEW(new_v, new_v0)
#else
#define STATE(k) IN_SHARED(m##k), OUT_SHARED(new_m##k),
#define TAKE_STATE(k) m = PTR(m##k), new_m = PTR(new_m##k);
#define STATE_OFFSETS(k) (m##k##_offset | new_m##k##_offset)
#define FOR_STATE(DO_OLD, DO_NEW) DO_OLD(m, m0) DO_NEW(new_m, new_m0)
#endif
#if LANES > 1
#define OFFSETS(k) (p##k##_offset | g##k##_offset | new_p##k##_offset | STATE_OFFSETS(k))
#define TAKE_OFFSETS(k) offsets = OFFSETS(k);
#else
#define TAKE_OFFSETS(k)
#endif
#define PARAMETERS(k) IN(p##k), IN(g##k), OUT(new_p##k), STATE(k) const int n##k, const int items##k,

// The work-items of tensor k come after those of the tensors before it.
#define TENSOR(k)                                                          \
  if (item >= items) {                                                     \
    item -= items, items = items##k, n = n##k;                             \
    p = PTR(p##k), g = PTR(g##k), new_p = PTR(new_p##k);                   \
    TAKE_STATE(k)                                                          \
    TAKE_OFFSETS(k)                                                        \
  }

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
#if COUNT > 8
                             PARAMETERS(8)
#endif
#if COUNT > 9
                             PARAMETERS(9)
#endif
#if COUNT > 10
                             PARAMETERS(10)
#endif
#if COUNT > 11
                             PARAMETERS(11)
#endif
#if COUNT > 12
                             PARAMETERS(12)
#endif
#if COUNT > 13
                             PARAMETERS(13)
#endif
#if COUNT > 14
                             PARAMETERS(14)
#endif
#if COUNT > 15
                             PARAMETERS(15)
#endif
#ifdef RATE_COMPUTED
                             IN(rate),
#else
                             SCALAR(rate),
#endif
                             SCALAR(shrink),
#ifdef SECOND_SCALE_COMPUTED
                             IN(second_scale),
#else
                             SCALAR(second_scale),
#endif
                             SCALAR(beta1), SCALAR(beta1_rest),
#ifdef GATED
                             IN(finite),
#endif
                             const float decay, const float beta2, const float beta2_rest, const float eps,
                             const int nesterov) {
#ifdef RATE_COMPUTED
  const float rate = LOAD(rate, 0);
#endif
#ifdef SECOND_SCALE_COMPUTED
  const float second_scale = LOAD(second_scale, 0);
#endif
#ifdef GATED
  const bool finite = LOAD(finite, 0) != 0;
#endif
  int item = (int)get_global_id(0), items = items0, n = n0;
  const global STORAGE(p0) *p = PTR(p0);
  const global STORAGE(g0) *g = PTR(g0);
  global STORAGE(new_p0) *new_p = PTR(new_p0);
#if RULE != SGD
  const global float *m = PTR(m0);
  global float *new_m = PTR(new_m0);
#endif
#if RULE == ADAM || RULE == RMSPROP_MOMENTUM
  const global float *v = PTR(v0);
  global float *new_v = PTR(new_v0);
#endif
#if LANES > 1
  ulong offsets = OFFSETS(0);
#endif
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
#if COUNT > 8
  TENSOR(8)
#endif
#if COUNT > 9
  TENSOR(9)
#endif
#if COUNT > 10
  TENSOR(10)
#endif
#if COUNT > 11
  TENSOR(11)
#endif
#if COUNT > 12
  TENSOR(12)
#endif
#if COUNT > 13
  TENSOR(13)
#endif
#if COUNT > 14
  TENSOR(14)
#endif
#if COUNT > 15
  TENSOR(15)
#endif
  if (item >= items) return;
#if VW > 1
  int i = item * CHUNK;
  const int end = BLOCK_END(i, CHUNK, n);
#ifdef NONTEMPORAL_STORES
#ifdef NONTEMPORAL_STATES
#define NONTEMPORAL_STATE NONTEMPORAL_VECTOR
#define AND_NONTEMPORAL_ALIGNED(pointer, like) &&NONTEMPORAL_ALIGNED(pointer)
#else
#define NONTEMPORAL_STATE PUT_VECTOR
#define AND_NONTEMPORAL_ALIGNED(pointer, like)
#endif
  if (NONTEMPORAL_ALIGNED(new_p) FOR_STATE(NO_LANES, AND_NONTEMPORAL_ALIGNED)) {
    for (; i + VW <= end; i += VW) STEP(VFLOAT, GET_VECTOR, NONTEMPORAL_VECTOR, NONTEMPORAL_STATE)
    NONTEMPORAL_FENCE();
  }
#endif
  for (; i + VW <= end; i += VW) STEP(VFLOAT, GET_VECTOR, PUT_VECTOR, PUT_VECTOR)
  SELDOM for (; i < end; ++i) STEP(float, GET_ONE, PUT_ONE, PUT_ONE)
#elif LANES > 1
  const int first = item * LANES, count = min(LANES, n - first);
  if (ALIGNED(offsets) && count == LANES) {
    READ_LANES(p, p0)
    READ_LANES(g, g0)
    NEW_LANES(new_p, new_p0)
    FOR_STATE(READ_LANES, NEW_LANES)
#pragma unroll
    for (int i = 0; i < LANES; ++i) STEP(float, GET_LANE, PUT_LANE, PUT_LANE)
    WRITE_LANES(new_p, new_p0)
    FOR_STATE(NO_LANES, WRITE_LANES)
  } else {
#pragma unroll 1
    for (int i = first; i < first + count; ++i) STEP(float, GET_ONE, PUT_ONE, PUT_ONE)
  }
#else
  const int i = item;
  STEP(float, GET_ONE, PUT_ONE, PUT_ONE)
#endif
}
