/* The gate: a proxy in front of a service that knows no tokens (design rule 4, hard case 53). Requests with any token arrive
 * in any order. What is forwarded takes effect upstream at some later moment, or never; its answer may never come. The
 * gate may be killed at any moment, and what it had forwarded goes on without it. Shown:
 *
 *   never_back       no effect upstream with a lower token after an effect with a greater one, or after an advance to a
 *                    greater one was answered                                                            (G8, P5)
 *   rightful_served  the greatest token seen is never refused, only told to wait                           (rule 1)
 *
 * The rules, all of them needed:
 *   - equal tokens run side by side; a lower one is refused from the moment a greater one has arrived;
 *   - a greater one is forwarded, and an advance answered, only when nothing lower is in flight. A forward whose answer
 *     did not come is in flight until the upstream is reset, or an operator settles it;
 *   - on disk is one mark, (token, open). It is opened for a token before the first forward under it and *after* the drain of
 *     the lower ones, and closed after a drain. Closing keeps the token: it is the fence;
 *   - after a crash an open token is in flight.
 *
 * Naive variants (-DFORWARD_AT_ONCE …) must violate a property; tests/models/models_test.py says which.
 */
#ifndef TOKENS
#define TOKENS 3
#endif
#ifndef FORWARDS
#define FORWARDS 3  /* upstream at the same time */
#endif

/* --- The gate's disk --- */
byte mark;
bool mark_open;

/* --- The gate's memory --- */
byte max;              /* the greatest token that has arrived */
byte forwarding;       /* the token that forwards may have: the mark's, as far as memory knows */
byte in_flight;        /* forwards under it, without an answer yet */
bool unknown;          /* one of them timed out, or was there before a crash */

/* --- Upstream: each forward --- */
#define NONE 0
#define RUNNING 1      /* it may take effect */
#define DONE 2         /* it took effect, and its answer is on its way */
#define ORPHANED 3     /* running, and nobody waits for its answer */
byte state[FORWARDS], token[FORWARDS];

/* --- For the properties only --- */
byte greatest;
byte arrived;          /* the greatest token that ever arrived */
bool never_back = true, rightful_served = true;
byte i, slot;          /* for loops; 0 between steps */

#define FULL FORWARDS
inline free_slot() {
  slot = FULL; i = 0;
  do
  :: i < FORWARDS -> if :: state[i] == NONE -> slot = i :: else fi; i++
  :: else -> break
  od;
  i = 0
}

inline open_mark(t) {
  mark = t; mark_open = true;
  printf("mark %d open\n", t)
}

inline forward(t) {
  free_slot();
  if
  :: slot != FULL -> state[slot] = RUNNING; token[slot] = t; in_flight++; printf("forward %d\n", t)
  :: else  /* 503: enough is under way */
  fi;
  slot = 0
}

#define DRAINED (in_flight == 0 && !unknown)

/* A request arrives. Lower: refused. Equal: forwarded, once the mark says so. Greater: from now on lower ones are refused. */
inline arrive(t) {
  if
#ifdef STRICT
  :: t <= max ->
#else
  :: t < max ->
#endif
     rightful_served = t < arrived;
     assert(rightful_served)
  :: else ->
     if :: t > arrived -> arrived = t :: else fi;
     if :: t > max -> max = t; printf("%d arrives\n", t) :: else fi;
#ifdef MARK_BEFORE_DRAIN
     if :: t > mark -> open_mark(t) :: else fi;
#endif
#ifdef FORWARD_AT_ONCE
     open_mark(t); forwarding = t; forward(t)
#else
     if
     :: t == forwarding && mark_open -> forward(t)
     :: else  /* 503 fence_draining, or wait */
     fi
#endif
  fi
}

/* The lower tokens are drained: the greater one gets the mark, and may be forwarded. */
inline rise() {
#ifdef MARK_AFTER_FORWARD
  forwarding = max; forward(max)
#else
#ifndef MARK_BEFORE_DRAIN
  open_mark(max);
#endif
  forwarding = max
#endif
}

inline answer_advance() {
  if :: max > greatest -> greatest = max; printf("advance to %d answered\n", max) :: else fi
}

inline close_mark() {
#ifdef CLOSE_FORGETS_TOKEN
  mark = 0;
#endif
  mark_open = false;
  printf("mark closed\n")
}

/* kill -9, and a new start from the mark. */
inline restart() {
  max = mark; forwarding = mark; in_flight = 0;
#ifdef FORGET_OPEN_MARK
  unknown = false;
#else
  unknown = mark_open;
#endif
  i = 0;
  do
  :: i < FORWARDS ->
     if :: state[i] == RUNNING -> state[i] = ORPHANED :: state[i] == DONE -> state[i] = NONE; token[i] = 0 :: else fi; i++
  :: else -> break
  od;
  i = 0;
  printf("restart\n")
}

/* The upstream was restarted, or an operator knows that all is over: nothing runs there any more. */
inline reset_upstream() {
  i = 0;
  do
  :: i < FORWARDS -> state[i] = NONE; token[i] = 0; i++
  :: else -> break
  od;
  i = 0;
  in_flight = 0; unknown = false;
  printf("upstream reset\n")
}

active proctype Gate() {
  do
  :: d_step { max > 0 && DRAINED && (forwarding < max || !mark_open) -> rise() }
#ifdef MARK_AFTER_FORWARD
  :: d_step { forwarding > 0 && (mark != forwarding || !mark_open) -> open_mark(forwarding) }
#endif
  /* The advance to the greatest token: nothing lower is in flight, and the fence is on disk. */
#ifdef ADVANCE_IN_MEMORY
  :: d_step { max > 0 && DRAINED -> answer_advance() }
#else
  :: d_step { max > 0 && mark == max && (forwarding == max || DRAINED) -> answer_advance() }
#endif
  :: d_step { DRAINED && mark_open -> close_mark() }
  :: d_step { restart() }
  :: d_step { unknown -> reset_upstream() }
  od
}

active [TOKENS] proctype Holder() {
  byte t = _pid;
  do
  :: d_step { arrive(t) }
  od
}

active [FORWARDS] proctype Upstream() {
  byte f = _pid - 1 - TOKENS;
  do
  :: d_step { state[f] == RUNNING || state[f] == ORPHANED ->
       never_back = token[f] >= greatest;
       assert(never_back);
       greatest = token[f];
       printf("effect of %d\n", token[f]);
       if :: state[f] == RUNNING -> state[f] = DONE :: else -> state[f] = NONE; token[f] = 0 fi }
  /* The answer arrives. */
  :: d_step { state[f] == DONE -> state[f] = NONE; token[f] = 0; in_flight-- }
  /* A refusal without an effect. */
  :: d_step { state[f] == RUNNING -> state[f] = NONE; token[f] = 0; in_flight-- }
  /* No answer in time: it may still take effect, so it stays in flight. */
  :: d_step { state[f] == RUNNING || state[f] == DONE ->
       if :: state[f] == RUNNING -> state[f] = ORPHANED :: else -> state[f] = NONE; token[f] = 0 fi;
       in_flight--;
#ifndef TIMEOUT_IS_DONE
       unknown = true;
#endif
       printf("a forward times out\n") }
  /* The connection broke before it got there: it never takes effect, but nobody knows. */
  :: d_step { state[f] == ORPHANED -> state[f] = NONE; token[f] = 0 }
  od
}
