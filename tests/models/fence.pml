/* The fence of one resource. Leases are not in here at all: holders overlap as they like, as if every clock were wrong, and
 * freeze, die, repeat and delay their messages. All that is taken from lease.pml is that no token is issued twice. Shown:
 *
 *   never_back       no effect with a lower token after an effect or an advance with a greater one        (G8, P5)
 *   nothing_lost     who writes has seen every write before its own: no lost update                       (rule 3)
 *   rightful_served  the holder of the greatest token that the resource has seen is never refused          (rule 1)
 *
 * Holder n has token n + 1: the order of the grants. Naive variants (-DNO_FENCE …) must violate a property;
 * tests/models/models_test.py says which.
 */
#ifndef HOLDERS
#define HOLDERS 3
#endif
#ifndef WRITES
#define WRITES 2  /* by each holder */
#endif

/* --- The resource, on its disk: the fence is stored with what it protects --- */
byte fence;
byte granted;  /* holders that have their token */

/* --- The holders --- */
#define WAITING 0   /* for its grant */
#define GRANTED 1   /* its advance is on its way */
#define ADVANCED 2
#define READ 3
#define STOPPED 4   /* it was refused: stale is final */
byte phase[HOLDERS];
byte writes[HOLDERS];
bool advance_msg[HOLDERS], write_msg[HOLDERS];  /* on their way; they may arrive late, twice or never */
bool checked[HOLDERS];                          /* -DCHECK_THEN_WRITE: passed the check, not yet written */

/* --- For the properties only --- */
byte greatest;        /* token of an effect or an advance */
bool seen[HOLDERS];   /* the holder has seen every write so far */
bool never_back = true, nothing_lost = true, rightful_served = true;
byte i;               /* for loops; 0 between steps */

#ifdef REISSUED_TOKEN
#define TOKEN(h) (h == 0 -> 1 : h)  /* the second holder has the first one's token */
#else
#define TOKEN(h) (h + 1)
#endif

inline effect(h) {
  never_back = TOKEN(h) >= greatest;
  assert(never_back);
  greatest = TOKEN(h);
  nothing_lost = seen[h];
  assert(nothing_lost);
  i = 0;
  do
  :: i < HOLDERS -> if :: i != h -> seen[i] = false :: else fi; i++
  :: else -> break
  od;
  i = 0;
  printf("write of %d applied\n", TOKEN(h))
}

inline refuse(h) {
  rightful_served = TOKEN(h) < greatest;
  assert(rightful_served);
#ifdef REFUSED_MOVES_FENCE
  fence = TOKEN(h);
#endif
  phase[h] = STOPPED;
  printf("%d refused\n", TOKEN(h))
}

/* Check and write are one step. */
inline admit(h) {
  if
#ifdef NO_FENCE
  :: true ->
#else
#ifdef STRICT
  :: TOKEN(h) > fence ->
#else
  :: TOKEN(h) >= fence ->
#endif
#endif
     fence = TOKEN(h);
     effect(h)
#ifndef NO_FENCE
  :: else -> refuse(h)
#endif
  fi
}

inline advance(h) {
  if
#ifdef NO_FENCE
  :: true -> skip;
#else
  :: TOKEN(h) >= fence -> fence = TOKEN(h);
     if :: TOKEN(h) > greatest -> greatest = TOKEN(h) :: else fi;
#endif
     if :: phase[h] == GRANTED -> phase[h] = ADVANCED :: else fi;
     printf("advance to %d\n", TOKEN(h))
#ifndef NO_FENCE
  :: else -> refuse(h)
#endif
  fi
}

active [HOLDERS] proctype Resource() {
  byte h = _pid;
  do
  :: d_step { advance_msg[h] -> advance(h); advance_msg[h] = false }
#ifdef CHECK_THEN_WRITE
  :: d_step { write_msg[h] && !checked[h] ->
       if :: TOKEN(h) >= fence -> fence = TOKEN(h); checked[h] = true :: else -> refuse(h); write_msg[h] = false fi }
  :: d_step { checked[h] -> effect(h); checked[h] = false; write_msg[h] = false }
#else
  :: d_step { write_msg[h] -> admit(h); write_msg[h] = false }
  :: d_step { write_msg[h] -> admit(h) }  /* and once more, later */
#endif
#ifdef DELETE_FORGETS_FENCE
  :: d_step { fence > 0 -> fence = 0; printf("deleted\n") }
#endif
  od
}

active [HOLDERS] proctype Holder() {
  byte h = _pid - HOLDERS;
  do
  :: d_step { phase[h] == WAITING && granted == h ->
       granted++; phase[h] = GRANTED; advance_msg[h] = true;
#ifdef READ_BEFORE_ADVANCE
       seen[h] = true;
#endif
       printf("grant %d\n", TOKEN(h)) }
#ifdef READ_BEFORE_ADVANCE
  :: d_step { phase[h] == ADVANCED -> phase[h] = READ }
#else
#ifdef NO_ADVANCE
  :: d_step { phase[h] == GRANTED || phase[h] == ADVANCED ->
#else
  :: d_step { phase[h] == ADVANCED ->  /* only when the advance was answered */
#endif
       seen[h] = true; phase[h] = READ; printf("%d reads\n", TOKEN(h)) }
#endif
  :: d_step { phase[h] == READ && !write_msg[h] && writes[h] < WRITES ->
       writes[h]++; write_msg[h] = true; printf("%d writes\n", TOKEN(h)) }
  od
}
