"""The runtime's functions as LLVM's text, with names in <> for what `runtime.py` fills in, which also explains it.

Those of runs that several threads share are in `pool_code.py`.
"""

from __future__ import annotations

#: Walking a table, patching the addresses of a run's arrays, and keeping BLAS at one thread meanwhile.
WALK = """
%Call = type { ptr, ptr, i64, i64, i64, i64 }
%Program = type { ptr, i64, ptr, i64, ptr, i64, i64, ptr, ptr, i64 }
%Patch = type { ptr, i64, i64 }
%Repeat = type { ptr, i64, i64, ptr, i64 }
%Move = type { ptr, i64 }

; How many runs keep BLAS at one thread, how many it had before, a lock for the two, and whether a fork is under way.
@pullback_blas = global [4 x i64] zeroinitializer

define internal void @walk(ptr %program, i64 %thread, i64 %threads, ptr %pool) nounwind {
entry:
  %calls = load ptr, ptr %program
  %count = load i64 from %Program, ptr %program, i64 0, i32 1
  %scratch.base = load ptr from %Program, ptr %program, i64 0, i32 4
  %stride = load i64 from %Program, ptr %program, i64 0, i32 5
  %scratch.offset = mul i64 %stride, %thread
  %scratch = getelementptr i8, ptr %scratch.base, i64 %scratch.offset
  call void @walk.calls(ptr %calls, i64 %count, i64 %thread, i64 %threads, ptr %pool, ptr %scratch)
  ret void
}

define internal void @walk.calls(
  ptr %calls, i64 %count, i64 %thread, i64 %threads, ptr %pool, ptr %scratch
) nounwind {
entry:
  %together = icmp sgt i64 %threads, 1
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %done ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %call, label %end

call:
  %function = load ptr from %Call, ptr %calls, i64 %i
  %arrays = load ptr from %Call, ptr %calls, i64 %i, i32 1
  %units = load i64 from %Call, ptr %calls, i64 %i, i32 2
  %parts = load i64 from %Call, ptr %calls, i64 %i, i32 3
  %chunk = load i64 from %Call, ptr %calls, i64 %i, i32 4
  %wait = load i64 from %Call, ptr %calls, i64 %i, i32 5
  %waits = icmp ne i64 %wait, 0
  %stops = and i1 %waits, %together
  br i1 %stops, label %meet, label %ready

meet:
  call void @barrier(ptr %pool, i64 %threads)
  br label %ready

ready:
  %repeats = icmp eq ptr %function, null
  br i1 %repeats, label %repeat, label %part.head

repeat:
  %joins = icmp slt i64 %thread, %parts
  br i1 %joins, label %repeat.do, label %done

repeat.do:
  %own = getelementptr %Repeat, ptr %arrays, i64 %thread
  call void @repeat(ptr %own, i64 %thread, i64 %threads, ptr %pool, ptr %scratch)
  br label %done

part.head:
  %part = phi i64 [ %thread, %ready ], [ %part.next, %part.do ]
  %mine = icmp slt i64 %part, %parts
  br i1 %mine, label %part.do, label %done

part.do:
  %begin = mul i64 %part, %chunk
  %after = add i64 %begin, %chunk
  %last = icmp slt i64 %after, %units
  %finish = select i1 %last, i64 %after, i64 %units
  call void %function(ptr %arrays, i64 %begin, i64 %finish, i64 %part, ptr %scratch)
  %part.next = add i64 %part, %threads
  br label %part.head

done:
  %next = add i64 %i, 1
  br label %head

end:
  ret void
}

; A loop: its calls, over and over, with the places of arrays moved after every step, and moved back at the end. Every
; thread has places of its own.
define internal void @repeat(ptr %loop, i64 %thread, i64 %threads, ptr %pool, ptr %scratch) nounwind {
entry:
  %calls = load ptr, ptr %loop
  %count = load i64 from %Repeat, ptr %loop, i64 0, i32 1
  %steps = load i64 from %Repeat, ptr %loop, i64 0, i32 2
  br label %head

head:
  %step = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %step, %steps
  br i1 %more, label %body, label %end

body:
  call void @walk.calls(ptr %calls, i64 %count, i64 %thread, i64 %threads, ptr %pool, ptr %scratch)
  call void @move(ptr %loop, i64 1)
  %next = add i64 %step, 1
  br label %head

end:
  %back = sub i64 0, %steps
  call void @move(ptr %loop, i64 %back)
  ret void
}

define internal void @move(ptr %loop, i64 %times) nounwind {
entry:
  %moves = load ptr from %Repeat, ptr %loop, i64 0, i32 3
  %count = load i64 from %Repeat, ptr %loop, i64 0, i32 4
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %end

body:
  %slot = load ptr from %Move, ptr %moves, i64 %i
  %stride = load i64 from %Move, ptr %moves, i64 %i, i32 1
  %distance = mul i64 %stride, %times
  %before = load i64, ptr %slot
  %after = add i64 %before, %distance
  store i64 %after, ptr %slot
  %next = add i64 %i, 1
  br label %head

end:
  ret void
}

define internal void @patch(ptr %program, ptr %bases) nounwind {
entry:
  %patches = load ptr from %Program, ptr %program, i64 0, i32 2
  %count = load i64 from %Program, ptr %program, i64 0, i32 3
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %end

body:
  %slot = load ptr from %Patch, ptr %patches, i64 %i
  %number = load i64 from %Patch, ptr %patches, i64 %i, i32 1
  %offset = load i64 from %Patch, ptr %patches, i64 %i, i32 2
  %base = load i64 from i64, ptr %bases, i64 %number
  %address = add i64 %base, %offset
  store i64 %address, ptr %slot
  %next = add i64 %i, 1
  br label %head

end:
  ret void
}

define internal void @blas.lock() nounwind {
entry:
  %lock = getelementptr i64, ptr @pullback_blas, i64 2
  br label %try

try:
  %taken = cmpxchg ptr %lock, i64 0, i64 1 acquire monotonic
  %ok = extractvalue { i64, i1 } %taken, 1
  br i1 %ok, label %end, label %again

again:
  <PAUSE>
  br label %try

end:
  ret void
}

; As `blas.lock`, once no fork is under way: a child would have BLAS's own locks as they were, held for ever.
define internal void @blas.enter() nounwind {
entry:
  %lock = getelementptr i64, ptr @pullback_blas, i64 2
  %closed.at = getelementptr i64, ptr @pullback_blas, i64 3
  br label %look

look:
  %closed = load atomic i64, ptr %closed.at acquire, align 8
  %open = icmp eq i64 %closed, 0
  br i1 %open, label %try, label %wait

wait:
  <PAUSE>
  br label %look

try:
  call void @blas.lock()
  %closed.now = load atomic i64, ptr %closed.at seq_cst, align 8
  %open.still = icmp eq i64 %closed.now, 0
  br i1 %open.still, label %end, label %leave

leave:
  store atomic i64 0, ptr %lock release, align 8
  br label %look

end:
  ret void
}

; BLAS has one number of threads for the whole process: the first run of several that overlap sets it to one, and the
; last one gives it back.
define internal void @blas.begin(ptr %program) nounwind {
entry:
  %set = load ptr from %Program, ptr %program, i64 0, i32 7
  %has = icmp ne ptr %set, null
  br i1 %has, label %count, label %end

count:
  call void @blas.enter()
  %users = load i64, ptr @pullback_blas
  %users.more = add i64 %users, 1
  store i64 %users.more, ptr @pullback_blas
  %first = icmp eq i64 %users, 0
  br i1 %first, label %change, label %unlock

change:
  %get = load ptr from %Program, ptr %program, i64 0, i32 8
  %before = call i32 %get()
  %before.long = sext i32 %before to i64
  %before.at = getelementptr i64, ptr @pullback_blas, i64 1
  store i64 %before.long, ptr %before.at
  call void %set(i32 1)
  br label %unlock

unlock:
  %lock = getelementptr i64, ptr @pullback_blas, i64 2
  store atomic i64 0, ptr %lock release, align 8
  br label %end

end:
  ret void
}

define internal void @blas.end(ptr %program) nounwind {
entry:
  %set = load ptr from %Program, ptr %program, i64 0, i32 7
  %has = icmp ne ptr %set, null
  br i1 %has, label %count, label %end

count:
  call void @blas.lock()
  %users = load i64, ptr @pullback_blas
  %users.less = sub i64 %users, 1
  store i64 %users.less, ptr @pullback_blas
  %last = icmp eq i64 %users.less, 0
  br i1 %last, label %change, label %unlock

change:
  %before.long = load i64 from i64, ptr @pullback_blas, i64 1
  %before = trunc i64 %before.long to i32
  call void %set(i32 %before)
  br label %unlock

unlock:
  %lock = getelementptr i64, ptr @pullback_blas, i64 2
  store atomic i64 0, ptr %lock release, align 8
  br label %end

end:
  ret void
}
"""

#: A run where there are no threads.
RUN_ALONE = """
define internal void @barrier(ptr %pool, i64 %threads) nounwind {
  ret void
}

define i64 @pullback_run(ptr %program, ptr %bases) nounwind {
  call void @patch(ptr %program, ptr %bases)
  call void @blas.begin(ptr %program)
  call void @walk(ptr %program, i64 0, i64 1, ptr null)
  call void @blas.end(ptr %program)
  ret i64 0
}
"""
