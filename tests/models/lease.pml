/* Leases: one authority with a disk, clients that may freeze, die or be slow at any point, a network that delays, repeats
 * and loses every message, and time. What is shown, for all interleavings within the bounds:
 *
 *   one_believer      whoever begins to believe that it holds the lock is alone with that belief       (G3 with G7, P3)
 *   nobody_overtaken  the lock is handed on only when nobody believes any more                         (G3)
 *   token_of_one      a token that was told belongs to one request for ever                            (G1, P1, P6)
 *   later_is_greater  who asked after another was told gets the greater token                          (P2)
 *   no_resurrection   a renewal succeeds only for the newest token                                     (P4)
 *
 * Time is kept in countdowns and ages, not in dates, so it is not bounded: only tokens and requests are. A step of time may
 * leave out the authority (its service time does not count pauses); it never leaves out a client, because a client counts on
 * CLOCK_BOOTTIME. A client that is frozen is one that takes no step. The drift of clocks is not in here: the margin
 * answers for it, and src/client/deadline_property_test.cc tests that.
 *
 * Each action is one step of the real code, which names it: "Model: lease.pml, action grant."
 * Naive variants (-DFROM_REPLY …) must violate a property; tests/models/models_test.py says which.
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef TTL
#define TTL 2
#endif
#ifndef TOKENS
#define TOKENS 3    /* grants in one run */
#endif
#ifndef REQUESTS
#define REQUESTS 2  /* per client */
#endif
#define WAIT_MAX 1  /* service time in the queue is counted up to here; beyond, rounded down */
#define NOBODY CLIENTS
#define NEVER 255

/* --- The authority's disk: what a crash leaves --- */
byte disk_last, disk_holder = NOBODY, disk_token, disk_request, disk_waited;

/* --- The authority's memory --- */
byte last;                         /* token */
byte holder = NOBODY, token, request, waited;
byte left;                         /* of the lease, in service time; NEVER until its grant is durable */
bool dirty;                        /* memory is ahead of the disk */
bool owed[CLIENTS];                /* a grant to be told once it is durable */
byte queued[CLIENTS];              /* the request that waits, 0 = none */
byte queued_for[CLIENTS];

/* --- The network: one slot for each kind of message, 0 = empty. What is lost is late for ever, or overwritten. --- */
byte ask_msg[CLIENTS], renew_msg[CLIENTS], release_msg[CLIENTS];
byte grant_msg[CLIENTS], grant_waited[CLIENTS];
byte renewed_msg[CLIENTS];

/* --- The clients --- */
#define IDLE 0
#define ASKING 1
#define HEARD 2    /* granted, but past its own deadline: not handed out unless a renewal is answered */
#define HOLDING 3  /* handed out; over when `mine` is */
byte phase[CLIENTS], mine_request[CLIENTS], mine_token[CLIENTS];
byte mine[CLIENTS];       /* time left before the client's own deadline; more than 0 is belief */
byte asked[CLIENTS];      /* time since the request was first sent */
byte renewing[CLIENTS];   /* time since the renewal that is under way was sent */

/* --- For the properties only --- */
byte told_to[TOKENS + 1];      /* client and request, 0 = not told */
byte greatest_told;
byte told_before[CLIENTS];     /* the greatest token told when this client first asked */
bool one_believer = true, nobody_overtaken = true, token_of_one = true, later_is_greater = true, no_resurrection = true;
byte i;  /* for loops; 0 between steps */

/* -DONLY=n looks at one property alone, to see that it can fail even where another one fails first. */
#ifndef ONLY
#define ONLY 0
#endif
#define MUST_HOLD(n, property) assert(property || (ONLY != 0 && ONLY != n))

inline check_alone(c) {
  one_believer = true;
  i = 0;
  do
  :: i < CLIENTS -> if :: i != c && mine[i] > 0 -> one_believer = false :: else fi; i++
  :: else -> break
  od;
  i = 0;
  MUST_HOLD(1, one_believer)
}

/* --- Actions of the authority --- */

inline tell(c) {
  token_of_one = told_to[token] == 0 || told_to[token] == 1 + c * 8 + request;
  MUST_HOLD(3, token_of_one);
  told_to[token] = 1 + c * 8 + request;
  if :: token > greatest_told -> greatest_told = token :: else fi;
  /* The answer to a request that its client has given up is ignored; here it does not even travel. */
  if
  :: phase[c] == ASKING && request == mine_request[c] -> grant_msg[c] = token; grant_waited[c] = waited
  :: else
  fi
}

inline grant(c, r, w) {
  nobody_overtaken = true;
  i = 0;
  do
  :: i < CLIENTS -> if :: mine[i] > 0 -> nobody_overtaken = false :: else fi; i++
  :: else -> break
  od;
  i = 0;
  MUST_HOLD(2, nobody_overtaken);
  last++;
  holder = c; token = last; request = r; waited = w; left = NEVER;
  queued[c] = 0; queued_for[c] = 0;
  dirty = true;
#ifdef TOLD_BEFORE_DURABLE
  tell(c);
#else
  owed[c] = true;
#endif
  printf("grant %d to client %d\n", last, c)
}

/* A request arrives: the same one again is answered with the same grant, or keeps its place. */
inline receive_ask(c) {
  if
  :: holder == c && request == ask_msg[c] ->
     if :: dirty -> owed[c] = true :: else -> tell(c) fi
  :: else ->
     if
     :: queued[c] == ask_msg[c] -> skip
     :: else ->
        if
        :: holder == NOBODY && last < TOKENS -> grant(c, ask_msg[c], 0)
#ifdef NO_QUEUE
        :: else  /* not obtained */
#else
        :: else -> queued[c] = ask_msg[c]; queued_for[c] = 0
#endif
        fi
     fi
  fi
}

inline free_lock() {
  holder = NOBODY; token = 0; request = 0; waited = 0; left = 0;
  dirty = true
}

inline receive_renew(c) {
#ifdef REVIVE
  if :: holder == NOBODY -> holder = c; token = renew_msg[c]; left = TTL :: else fi;
#endif
  if
  :: holder == c && token == renew_msg[c] ->
     no_resurrection = token >= greatest_told;
     MUST_HOLD(5, no_resurrection);
     if :: left != NEVER -> left = TTL :: else fi;
     renewed_msg[c] = renew_msg[c];
     printf("renew %d\n", token)
  :: else
  fi
}

/* A release names its lease: that of a former holder touches nobody. */
inline receive_release(c) {
  if
#ifdef RELEASE_BY_NAME
  :: holder != NOBODY ->
#else
  :: holder == c && token == release_msg[c] ->
#endif
     printf("release %d\n", token);
     free_lock()
  :: else
  fi
}

inline expire() {
  printf("expire %d\n", token);
  free_lock()
}

/* The batch is on disk. Only now the TTL begins, and only now anyone is told. */
inline sync() {
  disk_last = last; disk_holder = holder; disk_token = token; disk_request = request; disk_waited = waited;
  dirty = false;
  if :: left == NEVER -> left = TTL :: else fi;
  i = 0;
  do
  :: i < CLIENTS ->
     if :: owed[i] && holder == i -> tell(i) :: else fi;
     owed[i] = false; i++
  :: else -> break
  od;
  i = 0
}

/* kill -9 or power cut, and a new start: every lease has its full TTL again, queues are gone. */
inline restart() {
  holder = disk_holder; token = disk_token; request = disk_request; waited = disk_waited;
#ifdef COUNTER_FROM_LEASES
  last = disk_token;
#else
  last = disk_last;
#endif
  if :: holder == NOBODY -> left = 0 :: else -> left = TTL fi;
#ifdef RESTART_FORGETS_RENEWALS
  left = 0;
#endif
  dirty = false;
  i = 0;
  do
  :: i < CLIENTS -> owed[i] = false; queued[i] = 0; queued_for[i] = 0; i++
  :: else -> break
  od;
  i = 0;
  printf("restart\n")
}

active proctype Authority() {
  do
  :: d_step { dirty -> sync() }
  :: d_step { holder != NOBODY && left == 0 -> expire() }
  :: d_step { holder == NOBODY && last < TOKENS && queued[0] > 0 -> grant(0, queued[0], queued_for[0]) }
  :: d_step { holder == NOBODY && last < TOKENS && queued[1] > 0 -> grant(1, queued[1], queued_for[1]) }
#if CLIENTS > 2
  :: d_step { holder == NOBODY && last < TOKENS && queued[2] > 0 -> grant(2, queued[2], queued_for[2]) }
#endif
  :: d_step { restart() }
  od
}

/* Every message may be late, or never arrive. A release may arrive twice; a request does when its client asks again. */
active [CLIENTS] proctype Network() {
  byte c = _pid - 1;
  do
  :: d_step { ask_msg[c] > 0 -> receive_ask(c); ask_msg[c] = 0 }
  :: d_step { renew_msg[c] > 0 -> receive_renew(c); renew_msg[c] = 0 }
  :: d_step { release_msg[c] > 0 -> receive_release(c); release_msg[c] = 0 }
  :: d_step { release_msg[c] > 0 && holder != NOBODY -> receive_release(c) }
  od
}

/* --- Actions of a client --- */

inline ask(c) {
  mine_request[c]++; ask_msg[c] = mine_request[c];
  phase[c] = ASKING; asked[c] = 0;
  told_before[c] = greatest_told;
  printf("client %d asks\n", c)
}

inline ask_again(c) {
  ask_msg[c] = mine_request[c];
#ifdef FROM_RETRY
  asked[c] = 0;
#endif
  printf("client %d asks again\n", c)
}

/* The deadline counts from the first send, plus what the authority says it waited there, plus the TTL. */
inline hear_grant(c) {
  mine_token[c] = grant_msg[c];
#ifdef FROM_REPLY
  mine[c] = TTL;
#else
  if
  :: grant_waited[c] + TTL > asked[c] -> mine[c] = grant_waited[c] + TTL - asked[c]
  :: else -> mine[c] = 0
  fi;
#endif
  later_is_greater = mine_token[c] > told_before[c];
  MUST_HOLD(4, later_is_greater);
  if :: mine[c] > 0 -> phase[c] = HOLDING; check_alone(c) :: else -> phase[c] = HEARD fi;
  grant_msg[c] = 0; grant_waited[c] = 0;
  asked[c] = 0; told_before[c] = 0;
  printf("client %d hears that it has %d, for %d more\n", c, mine_token[c], mine[c])
}

inline send_renewal(c) {
  renew_msg[c] = mine_token[c]; renewing[c] = 0
}

/* Counts from the send that is answered. What is over for the client stays over. */
inline hear_renewal(c) {
  if
  :: renewed_msg[c] == mine_token[c] && TTL - renewing[c] > mine[c] && (phase[c] == HEARD || mine[c] > 0) ->
     mine[c] = TTL - renewing[c];
#ifdef RENEWAL_FROM_REPLY
     mine[c] = TTL;
#endif
     phase[c] = HOLDING;
     check_alone(c);
     printf("client %d hears that %d is renewed, for %d more\n", c, mine_token[c], mine[c])
  :: else
  fi;
  renewed_msg[c] = 0; renewing[c] = 0
}

inline stop(c) {
  phase[c] = IDLE; mine[c] = 0; mine_token[c] = 0; asked[c] = 0; told_before[c] = 0; renewing[c] = 0;
  renewed_msg[c] = 0; grant_msg[c] = 0; grant_waited[c] = 0
}

active [CLIENTS] proctype Client() {
  byte c = _pid - 1 - CLIENTS;
  do
  :: d_step { phase[c] == IDLE && mine_request[c] < REQUESTS && ask_msg[c] == 0 && last < TOKENS -> ask(c) }
  :: d_step { phase[c] == ASKING && ask_msg[c] == 0 -> ask_again(c) }
  :: d_step { phase[c] == ASKING && grant_msg[c] > 0 -> hear_grant(c) }
  :: d_step { phase[c] >= HEARD && renew_msg[c] == 0 && renewed_msg[c] == 0 -> send_renewal(c) }
  :: d_step { phase[c] >= HEARD && renewed_msg[c] > 0 -> hear_renewal(c) }
  :: d_step { phase[c] >= HEARD -> release_msg[c] = mine_token[c]; stop(c) }
  :: d_step { (phase[c] == ASKING || (phase[c] == HOLDING && mine[c] == 0)) ->
       printf("client %d gives up\n", c); stop(c) }
  od
}

/* --- Time --- */

inline client_time(c) {
  if :: mine[c] > 0 -> mine[c]-- :: else fi;
  if :: phase[c] == ASKING && asked[c] < TTL + WAIT_MAX -> asked[c]++ :: else fi;
  if :: (renew_msg[c] > 0 || renewed_msg[c] > 0) && renewing[c] < TTL -> renewing[c]++ :: else fi
}

inline service_time() {
  if :: left > 0 && left != NEVER -> left-- :: else fi;
  i = 0;
  do
  :: i < CLIENTS -> if :: queued[i] > 0 && queued_for[i] < WAIT_MAX -> queued_for[i]++ :: else fi; i++
  :: else -> break
  od;
  i = 0
}

inline clients_time() {
  client_time(0); client_time(1);
#if CLIENTS > 2
  client_time(2);
#endif
}

active proctype Time() {
  do
  :: d_step { clients_time(); service_time(); printf("tick\n") }
  :: d_step { clients_time(); printf("tick while the authority is paused\n") }
#ifdef CLIENT_CLOCK_STOPS
  :: d_step { service_time(); printf("tick while the clients are suspended\n") }
#endif
  od
}
