; What compiled code needs of numba's runtime, so that it runs without numba. Numba's headers give names and types
; (numba/core/runtime/nrt.h, numba/_helperlib.c); the structure is MemInfo: count of references, destructor and its
; argument, address of the data, size, allocator.

declare ptr @malloc(i64)
declare void @free(ptr)

; Memory of `size` bytes whose address is a multiple of `alignment`, with one reference. The header comes first.
define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %alignment) {
  %wide = zext i32 %alignment to i64
  %room = add i64 %size, 48
  %whole = add i64 %room, %wide
  %header = call ptr @malloc(i64 %whole)
  %failed = icmp eq ptr %header, null
  br i1 %failed, label %done, label %fill

fill:
  %start = ptrtoint ptr %header to i64
  %behind = add i64 %start, 48
  %over = add i64 %behind, %wide
  %last = sub i64 %over, 1
  %rest = urem i64 %last, %wide
  %at = sub i64 %last, %rest
  %data = inttoptr i64 %at to ptr
  store i64 1, ptr %header
  %p1 = getelementptr i64, ptr %header, i64 1
  store ptr null, ptr %p1
  %p2 = getelementptr i64, ptr %header, i64 2
  store ptr null, ptr %p2
  %p3 = getelementptr i64, ptr %header, i64 3
  store ptr %data, ptr %p3
  %p4 = getelementptr i64, ptr %header, i64 4
  store i64 %size, ptr %p4
  %p5 = getelementptr i64, ptr %header, i64 5
  store ptr null, ptr %p5
  br label %done

done:
  ret ptr %header
}

define ptr @NRT_MemInfo_alloc_safe_aligned(i64 %size, i32 %alignment) {
  %header = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %alignment)
  ret ptr %header
}

define ptr @NRT_MemInfo_alloc(i64 %size) {
  %header = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %header
}

define ptr @NRT_Allocate(i64 %size) {
  %memory = call ptr @malloc(i64 %size)
  ret ptr %memory
}

define void @NRT_Free(ptr %memory) {
  call void @free(ptr %memory)
  ret void
}

define void @NRT_incref(ptr %header) noinline {
  %none = icmp eq ptr %header, null
  br i1 %none, label %done, label %count

count:
  %before = atomicrmw add ptr %header, i64 1 monotonic
  br label %done

done:
  ret void
}

define void @NRT_decref(ptr %header) noinline {
  %none = icmp eq ptr %header, null
  br i1 %none, label %done, label %count

count:
  %before = atomicrmw sub ptr %header, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %end, label %done

end:
  call void @NRT_MemInfo_call_dtor(ptr %header)
  br label %done

done:
  ret void
}

define ptr @NRT_MemInfo_data_fast(ptr %header) {
  %at = getelementptr i64, ptr %header, i64 3
  %data = load ptr, ptr %at
  ret ptr %data
}

; Called when the last reference is gone. Arrays of other owners have no header here.
define void @NRT_MemInfo_call_dtor(ptr %header) {
  call void @free(ptr %header)
  ret void
}

; Strides of an array of other dimensions over the same elements; 0 unless the elements are contiguous in C's order.
define i32 @numba_attempt_nocopy_reshape(i64 %nd, ptr %dims, ptr %strides, i64 %newnd, ptr %newdims, ptr %newstrides, i64 %itemsize, i32 %fortran) {
entry:
  %other = icmp ne i32 %fortran, 0
  br i1 %other, label %refuse, label %check

check:
  %i = phi i64 [ %nd, %entry ], [ %axis, %next ]
  %step = phi i64 [ %itemsize, %entry ], [ %wider, %next ]
  %checked = icmp eq i64 %i, 0
  br i1 %checked, label %fill, label %axis.of

axis.of:
  %axis = sub i64 %i, 1
  %dim.at = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim.at
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %empty = icmp eq i64 %dim, 0
  br i1 %empty, label %fill, label %compare

compare:
  %same = icmp eq i64 %stride, %step
  %single = icmp eq i64 %dim, 1
  %fits = or i1 %same, %single
  br i1 %fits, label %next, label %refuse

next:
  %wider = mul i64 %step, %dim
  br label %check

fill:
  br label %write

write:
  %j = phi i64 [ %newnd, %fill ], [ %new, %written ]
  %size = phi i64 [ %itemsize, %fill ], [ %larger, %written ]
  %finished = icmp eq i64 %j, 0
  br i1 %finished, label %accept, label %written

written:
  %new = sub i64 %j, 1
  %to = getelementptr i64, ptr %newstrides, i64 %new
  store i64 %size, ptr %to
  %from = getelementptr i64, ptr %newdims, i64 %new
  %extent = load i64, ptr %from
  %larger = mul i64 %size, %extent
  br label %write

accept:
  ret i32 1

refuse:
  ret i32 0
}
