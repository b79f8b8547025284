"""The functions of runs that several threads share, as LLVM's text: the continuation of `runtime_code.py`."""

from __future__ import annotations

#: A run that announces itself to the pool's workers if it is for several threads.
RUN_SHARED = """
@pullback_pool = global ptr null

declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()

define i64 @pullback_run(ptr %program, ptr %bases) nounwind {
entry:
  call void @patch(ptr %program, ptr %bases)
  call void @blas.begin(ptr %program)
  %threads = load i64 from %Program, ptr %program, i64 0, i32 6
  %many = icmp sgt i64 %threads, 1
  br i1 %many, label %find, label %alone

find:
  %pool = load atomic ptr, ptr @pullback_pool acquire, align 8
  %none = icmp eq ptr %pool, null
  br i1 %none, label %alone, label %count

count:
  %workers.at = getelementptr i8, ptr %pool, i64 <WORKERS>
  %workers = load atomic i64, ptr %workers.at acquire, align 8
  %present = add i64 %workers, 1
  %few = icmp slt i64 %present, %threads
  br i1 %few, label %alone, label %take

take:
  %busy.at = getelementptr i8, ptr %pool, i64 <BUSY>
  %taken = cmpxchg ptr %busy.at, i64 0, i64 1 acquire monotonic
  %free = extractvalue { i64, i1 } %taken, 1
  br i1 %free, label %announce, label %alone

announce:
  %shared.at = getelementptr i8, ptr %pool, i64 <SHARED>
  store ptr %program, ptr %shared.at
  %announced.at = getelementptr i8, ptr %pool, i64 <ANNOUNCED>
  %old = load atomic i64, ptr %announced.at monotonic, align 8
  %old.counter = and i64 %old, -256
  %counter = add i64 %old.counter, 256
  %announced = or i64 %counter, %threads
  %joined.at = getelementptr i8, ptr %pool, i64 <JOINED>
  store atomic i64 %counter, ptr %joined.at monotonic, align 8
  store atomic i64 %announced, ptr %announced.at seq_cst, align 8
  %sleepers.at = getelementptr i8, ptr %pool, i64 <SLEEPERS>
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  %others = sub i64 %threads, 1
  %patience = load i64 from %Program, ptr %program, i64 0, i32 9
  br i1 %asleep, label %wake, label %gather

wake:
  %mutex = getelementptr i8, ptr %pool, i64 <MUTEX>
  %condition = getelementptr i8, ptr %pool, i64 <CONDITION>
  %0 = call i32 @pthread_mutex_lock(ptr %mutex)
  %1 = call i32 @pthread_cond_broadcast(ptr %condition)
  %2 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %gather

gather:
  %looks = phi i64 [ 0, %announce ], [ 0, %wake ], [ %looks.next, %pause ], [ %looks.late, %yield ]
  %joined = load atomic i64, ptr %joined.at acquire, align 8
  %joined.count = and i64 %joined, 127
  %complete = icmp eq i64 %joined.count, %others
  br i1 %complete, label %work, label %missing

missing:
  %worthwhile = icmp slt i64 %looks, %patience
  br i1 %worthwhile, label %rest, label %close

rest:
  %soon = icmp slt i64 %looks, <SPINS>
  br i1 %soon, label %pause, label %yield

pause:
  <PAUSE>
  %looks.next = add i64 %looks, 1
  br label %gather

yield:
  %3 = call i32 @sched_yield()
  %looks.late = add i64 %looks, <YIELD>
  br label %gather

close:
  %closed = atomicrmw or ptr %joined.at, i64 128 acq_rel
  %came = and i64 %closed, 127
  %some = icmp ne i64 %came, 0
  br i1 %some, label %work, label %leave

leave:
  store atomic i64 0, ptr %busy.at release, align 8
  br label %alone

work:
  %helpers = phi i64 [ %others, %gather ], [ %came, %close ]
  %present.now = add i64 %helpers, 1
  call void @walk(ptr %program, i64 0, i64 %present.now, ptr %pool)
  call void @barrier(ptr %pool, i64 %present.now)
  store atomic i64 0, ptr %busy.at release, align 8
  br label %end

alone:
  %status = phi i64 [ 0, %entry ], [ <TOO_FEW>, %find ], [ <TOO_FEW>, %count ], [ 0, %take ], [ 0, %leave ]
  call void @walk(ptr %program, i64 0, i64 1, ptr null)
  br label %end

end:
  %result = phi i64 [ 0, %work ], [ %status, %alone ]
  call void @blas.end(ptr %program)
  ret i64 %result
}
"""

#: The barrier, and what a worker does.
POOL = """
define internal void @barrier(ptr %pool, i64 %threads) nounwind noinline {
entry:
  %arrived.at = getelementptr i8, ptr %pool, i64 <ARRIVED>
  %phase.at = getelementptr i8, ptr %pool, i64 <PHASE>
  %phase = load atomic i64, ptr %phase.at acquire, align 8
  %before = atomicrmw add ptr %arrived.at, i64 1 acq_rel
  %here = add i64 %before, 1
  %last = icmp eq i64 %here, %threads
  br i1 %last, label %open, label %look

open:
  store atomic i64 0, ptr %arrived.at monotonic, align 8
  %phase.next = add i64 %phase, 1
  store atomic i64 %phase.next, ptr %phase.at release, align 8
  ret void

look:
  %spins = phi i64 [ 0, %entry ], [ %spins.next, %pause ], [ %spins, %yield ]
  %now = load atomic i64, ptr %phase.at acquire, align 8
  %opened = icmp ne i64 %now, %phase
  br i1 %opened, label %end, label %closed

closed:
  %patient = icmp slt i64 %spins, <SPINS>
  br i1 %patient, label %pause, label %yield

pause:
  <PAUSE>
  %spins.next = add i64 %spins, 1
  br label %look

yield:
  %0 = call i32 @sched_yield()
  br label %look

end:
  ret void
}

define void @pullback_work(ptr %pool, i64 %number) nounwind {
entry:
  %announced.at = getelementptr i8, ptr %pool, i64 <ANNOUNCED>
  %shared.at = getelementptr i8, ptr %pool, i64 <SHARED>
  %joined.at = getelementptr i8, ptr %pool, i64 <JOINED>
  %sleepers.at = getelementptr i8, ptr %pool, i64 <SLEEPERS>
  %mutex = getelementptr i8, ptr %pool, i64 <MUTEX>
  %condition = getelementptr i8, ptr %pool, i64 <CONDITION>
  br label %wait

wait:
  %seen = phi i64 [ 0, %entry ], [ %announced, %skip ], [ %announced, %work ]
  br label %look

look:
  %spins = phi i64 [ 0, %wait ], [ %spins.next, %pause ], [ %spins.next, %yield ]
  %looked = load atomic i64, ptr %announced.at acquire, align 8
  %new = icmp ne i64 %looked, %seen
  br i1 %new, label %begin, label %idle

idle:
  %spins.next = add i64 %spins, 1
  %eager = icmp slt i64 %spins, <SPINS>
  br i1 %eager, label %pause, label %slow

pause:
  <PAUSE>
  br label %look

slow:
  %patient = icmp slt i64 %spins, <WORKER_LOOKS>
  br i1 %patient, label %yield, label %sleep

yield:
  %yielded = call i32 @sched_yield()
  br label %look

sleep:
  %0 = call i32 @pthread_mutex_lock(ptr %mutex)
  %1 = atomicrmw add ptr %sleepers.at, i64 1 seq_cst
  br label %check

check:
  %checked = load atomic i64, ptr %announced.at seq_cst, align 8
  %called = icmp ne i64 %checked, %seen
  br i1 %called, label %awake, label %asleep

asleep:
  %2 = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %check

awake:
  %3 = atomicrmw sub ptr %sleepers.at, i64 1 seq_cst
  %4 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %begin

begin:
  %announced = phi i64 [ %looked, %look ], [ %checked, %awake ]
  %threads = and i64 %announced, 255
  %mine = icmp slt i64 %number, %threads
  %stop = icmp eq i64 %threads, <STOP>
  br i1 %stop, label %end, label %choose

choose:
  br i1 %mine, label %join, label %skip

join:
  %counter = and i64 %announced, -256
  %joined = load atomic i64, ptr %joined.at acquire, align 8
  %joined.counter = and i64 %joined, -128  ; with the mark that a run is closed
  %open = icmp eq i64 %joined.counter, %counter
  br i1 %open, label %try, label %skip

try:
  %joined.more = add i64 %joined, 1
  %exchanged = cmpxchg ptr %joined.at, i64 %joined, i64 %joined.more acq_rel monotonic
  %is.in = extractvalue { i64, i1 } %exchanged, 1
  %before.me = and i64 %joined, 127
  %me = add i64 %before.me, 1
  %others = sub i64 %threads, 1
  br i1 %is.in, label %gather, label %join

skip:
  br label %wait

gather:
  %looks = phi i64 [ 0, %try ], [ %looks.next, %linger ], [ %looks, %let ]
  %now = load atomic i64, ptr %joined.at acquire, align 8
  %came = and i64 %now, 127
  %complete = icmp eq i64 %came, %others
  %mark = and i64 %now, 128
  %closed = icmp ne i64 %mark, 0
  %begins = or i1 %complete, %closed
  br i1 %begins, label %work, label %missing

missing:
  %soon = icmp slt i64 %looks, <SPINS>
  br i1 %soon, label %linger, label %let

linger:
  <PAUSE>
  %looks.next = add i64 %looks, 1
  br label %gather

let:
  %let.go = call i32 @sched_yield()
  br label %gather

work:
  %present = add i64 %came, 1
  %program = load ptr, ptr %shared.at
  call void @walk(ptr %program, i64 %me, i64 %present, ptr %pool)
  call void @barrier(ptr %pool, i64 %present)
  br label %wait

end:
  ret void
}
"""
