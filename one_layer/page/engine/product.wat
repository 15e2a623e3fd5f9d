;; What takes a translator's time, in float32, where a browser has WebAssembly with SIMD: five rows of numbers times a matrix (room.js) or times a
;; table of small whole numbers (codes.js), eight rows times a table of signs (signs.js), and the sum of exponentials (functions.js).
;; product.js holds these instructions assembled; tests/page/test_product.py assembles them again and compares.
(module
  (memory (import "page" "memory") 0)

  ;; The sum of the four numbers of a vector.
  (func $sum (param $v v128) (result f32)
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $v)) (f32x4.extract_lane 1 (local.get $v)))
      (f32.add (f32x4.extract_lane 2 (local.get $v)) (f32x4.extract_lane 3 (local.get $v)))))

  ;; y = x Wᵀ. The bytes where x [5, inputs], W [outputs, inputs] and y [5, outputs] begin, and from a row of y to the next one; `inputs` is a
  ;; multiple of 4, `outputs` at least 2.
  ;; Two outputs at once: ten sums of four in registers, so that four weights are loaded once for five rows.
  (func $five (export "five") (param $x i32) (param $inputs i32) (param $weights i32) (param $outputs i32) (param $y i32) (param $line i32)
    (local $row i32) (local $last i32) (local $o i32) (local $end i32) (local $p i32) (local $q i32)
    (local $a i32) (local $b i32) (local $c i32) (local $d i32) (local $e i32) (local $first v128) (local $second v128) (local $value v128)
    (local $a0 v128) (local $b0 v128) (local $c0 v128) (local $d0 v128) (local $e0 v128)
    (local $a1 v128) (local $b1 v128) (local $c1 v128) (local $d1 v128) (local $e1 v128)
    (local.set $row (i32.shl (local.get $inputs) (i32.const 2)))
    (local.set $last (i32.sub (local.get $outputs) (i32.const 2)))
    (loop $pair
      (local.set $p (i32.add (local.get $weights) (i32.mul (local.get $o) (local.get $row))))
      (local.set $q (i32.add (local.get $p) (local.get $row)))
      (local.set $end (local.get $q))
      (local.set $a (local.get $x))
      (local.set $b (i32.add (local.get $a) (local.get $row)))
      (local.set $c (i32.add (local.get $b) (local.get $row)))
      (local.set $d (i32.add (local.get $c) (local.get $row)))
      (local.set $e (i32.add (local.get $d) (local.get $row)))
      (local.set $a0 (v128.const f32x4 0 0 0 0))
      (local.set $b0 (v128.const f32x4 0 0 0 0))
      (local.set $c0 (v128.const f32x4 0 0 0 0))
      (local.set $d0 (v128.const f32x4 0 0 0 0))
      (local.set $e0 (v128.const f32x4 0 0 0 0))
      (local.set $a1 (v128.const f32x4 0 0 0 0))
      (local.set $b1 (v128.const f32x4 0 0 0 0))
      (local.set $c1 (v128.const f32x4 0 0 0 0))
      (local.set $d1 (v128.const f32x4 0 0 0 0))
      (local.set $e1 (v128.const f32x4 0 0 0 0))
      (loop $four
        (local.set $first (v128.load (local.get $p)))
        (local.set $second (v128.load (local.get $q)))
        (local.set $value (v128.load (local.get $a)))
        (local.set $a0 (f32x4.add (local.get $a0) (f32x4.mul (local.get $value) (local.get $first))))
        (local.set $a1 (f32x4.add (local.get $a1) (f32x4.mul (local.get $value) (local.get $second))))
        (local.set $value (v128.load (local.get $b)))
        (local.set $b0 (f32x4.add (local.get $b0) (f32x4.mul (local.get $value) (local.get $first))))
        (local.set $b1 (f32x4.add (local.get $b1) (f32x4.mul (local.get $value) (local.get $second))))
        (local.set $value (v128.load (local.get $c)))
        (local.set $c0 (f32x4.add (local.get $c0) (f32x4.mul (local.get $value) (local.get $first))))
        (local.set $c1 (f32x4.add (local.get $c1) (f32x4.mul (local.get $value) (local.get $second))))
        (local.set $value (v128.load (local.get $d)))
        (local.set $d0 (f32x4.add (local.get $d0) (f32x4.mul (local.get $value) (local.get $first))))
        (local.set $d1 (f32x4.add (local.get $d1) (f32x4.mul (local.get $value) (local.get $second))))
        (local.set $value (v128.load (local.get $e)))
        (local.set $e0 (f32x4.add (local.get $e0) (f32x4.mul (local.get $value) (local.get $first))))
        (local.set $e1 (f32x4.add (local.get $e1) (f32x4.mul (local.get $value) (local.get $second))))
        (local.set $a (i32.add (local.get $a) (i32.const 16)))
        (local.set $b (i32.add (local.get $b) (i32.const 16)))
        (local.set $c (i32.add (local.get $c) (i32.const 16)))
        (local.set $d (i32.add (local.get $d) (i32.const 16)))
        (local.set $e (i32.add (local.get $e) (i32.const 16)))
        (local.set $q (i32.add (local.get $q) (i32.const 16)))
        (local.set $p (i32.add (local.get $p) (i32.const 16)))
        (br_if $four (i32.lt_u (local.get $p) (local.get $end))))
      (local.set $p (i32.add (local.get $y) (i32.shl (local.get $o) (i32.const 2))))
      (f32.store (local.get $p) (call $sum (local.get $a0)))
      (f32.store offset=4 (local.get $p) (call $sum (local.get $a1)))
      (local.set $p (i32.add (local.get $p) (local.get $line)))
      (f32.store (local.get $p) (call $sum (local.get $b0)))
      (f32.store offset=4 (local.get $p) (call $sum (local.get $b1)))
      (local.set $p (i32.add (local.get $p) (local.get $line)))
      (f32.store (local.get $p) (call $sum (local.get $c0)))
      (f32.store offset=4 (local.get $p) (call $sum (local.get $c1)))
      (local.set $p (i32.add (local.get $p) (local.get $line)))
      (f32.store (local.get $p) (call $sum (local.get $d0)))
      (f32.store offset=4 (local.get $p) (call $sum (local.get $d1)))
      (local.set $p (i32.add (local.get $p) (local.get $line)))
      (f32.store (local.get $p) (call $sum (local.get $e0)))
      (f32.store offset=4 (local.get $p) (call $sum (local.get $e1)))
      (if (i32.lt_u (local.get $o) (local.get $last))
        (then
          (local.set $o (i32.add (local.get $o) (i32.const 2)))
          (if (i32.gt_u (local.get $o) (local.get $last)) (then (local.set $o (local.get $last))))
          (br $pair)))))

  ;; The same with W [outputs, inputs] as codes of a byte, each of which counts as often as the unit of its output says; `inputs` is a multiple of 16,
  ;; `outputs` at least 16. Sixteen outputs at a time are written as numbers to `block`, which stays in the cache.
  (func (export "codes") (param $x i32) (param $inputs i32) (param $codes i32) (param $units i32) (param $outputs i32) (param $y i32) (param $block i32)
    (local $o i32) (local $code i32) (local $at i32) (local $end i32) (local $unit i32) (local $last i32) (local $row i32) (local $size v128) (local $bytes v128) (local $half v128)
    (local.set $last (i32.sub (local.get $outputs) (i32.const 16)))
    (loop $sixteen
      (local.set $code (i32.add (local.get $codes) (i32.mul (local.get $o) (local.get $inputs))))
      (local.set $unit (i32.add (local.get $units) (i32.shl (local.get $o) (i32.const 2))))
      (local.set $at (local.get $block))
      (local.set $end (i32.add (local.get $code) (i32.shl (local.get $inputs) (i32.const 4))))
      (loop $output
        (local.set $size (v128.load32_splat (local.get $unit)))
        (local.set $unit (i32.add (local.get $unit) (i32.const 4)))
        (local.set $row (i32.add (local.get $code) (local.get $inputs)))
        (loop $each
          (local.set $bytes (v128.load (local.get $code)))
          (local.set $half (i16x8.extend_low_i8x16_s (local.get $bytes)))
          (v128.store (local.get $at) (f32x4.mul (local.get $size) (f32x4.convert_i32x4_s (i32x4.extend_low_i16x8_s (local.get $half)))))
          (v128.store offset=16 (local.get $at) (f32x4.mul (local.get $size) (f32x4.convert_i32x4_s (i32x4.extend_high_i16x8_s (local.get $half)))))
          (local.set $half (i16x8.extend_high_i8x16_s (local.get $bytes)))
          (v128.store offset=32 (local.get $at) (f32x4.mul (local.get $size) (f32x4.convert_i32x4_s (i32x4.extend_low_i16x8_s (local.get $half)))))
          (v128.store offset=48 (local.get $at) (f32x4.mul (local.get $size) (f32x4.convert_i32x4_s (i32x4.extend_high_i16x8_s (local.get $half)))))
          (local.set $at (i32.add (local.get $at) (i32.const 64)))
          (br_if $each (i32.lt_u (local.tee $code (i32.add (local.get $code) (i32.const 16))) (local.get $row))))
        (br_if $output (i32.lt_u (local.get $code) (local.get $end))))
      (call $five (local.get $x) (local.get $inputs) (local.get $block) (i32.const 16)
        (i32.add (local.get $y) (i32.shl (local.get $o) (i32.const 2))) (i32.shl (local.get $outputs) (i32.const 2)))
      (if (i32.lt_u (local.get $o) (local.get $last))
        (then
          (local.set $o (i32.add (local.get $o) (i32.const 16)))
          (if (i32.gt_u (local.get $o) (local.get $last)) (then (local.set $o (local.get $last))))
          (br $sixteen)))))

  ;; The same with W [outputs, inputs] under a mask: the numbers whose bit is 0 do not count. 128 numbers have 16 bytes of bits: four words, one for
  ;; each number of a vector, whose highest bit is that of the first vector. `inputs` is a multiple of 8, `outputs` of 16.
  (func (export "masked") (param $x i32) (param $inputs i32) (param $weights i32) (param $bits i32) (param $outputs i32) (param $y i32) (param $block i32)
    (local $at i32) (local $stop i32) (local $end i32) (local $last i32) (local $line i32) (local $mask v128)
    (local.set $line (i32.shl (local.get $outputs) (i32.const 2)))
    (local.set $last (i32.add (local.get $y) (local.get $line)))
    (local.set $end (i32.add (local.get $block) (i32.shl (local.get $inputs) (i32.const 6))))
    (loop $sixteen
      (local.set $at (local.get $block))
      (loop $bits
        (local.set $mask (v128.load (local.get $bits)))
        (local.set $bits (i32.add (local.get $bits) (i32.const 16)))
        (local.set $stop (i32.add (local.get $at) (i32.const 512)))
        (loop $four
          (v128.store (local.get $at) (v128.and (v128.load (local.get $weights)) (i32x4.shr_s (local.get $mask) (i32.const 31))))
          (local.set $mask (i32x4.shl (local.get $mask) (i32.const 1)))
          (local.set $weights (i32.add (local.get $weights) (i32.const 16)))
          (br_if $four (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $stop))))
        (br_if $bits (i32.lt_u (local.get $at) (local.get $end))))
      (call $five (local.get $x) (local.get $inputs) (local.get $block) (i32.const 16) (local.get $y) (local.get $line))
      (br_if $sixteen (i32.lt_u (local.tee $y (i32.add (local.get $y) (i32.const 64))) (local.get $last)))))

  ;; y = x Wᵀ, where each number of W is 1, or -1 if its bit is set. The bytes where x [8 groups, 8 rows], room for sums [groups, 256, 8 rows],
  ;; the bits [outputs, groups] and y [8 rows, outputs] begin.
  (func (export "signs") (param $x i32) (param $groups i32) (param $sums i32) (param $bits i32) (param $outputs i32) (param $y i32)
    (local $sum i32) (local $other i32) (local $span i32) (local $end i32) (local $line i32) (local $value v128) (local $a v128) (local $b v128)
    ;; All sums of a group: an input doubles their number, for it is added to those that were there, and in a copy of them subtracted.
    (local.set $sum (local.get $sums))
    (local.set $line (i32.add (local.get $sums) (i32.shl (local.get $groups) (i32.const 13))))
    (loop $group
      (v128.store (local.get $sum) (v128.const f32x4 0 0 0 0))
      (v128.store offset=16 (local.get $sum) (v128.const f32x4 0 0 0 0))
      (local.set $span (i32.const 32))
      (loop $input
        (local.set $a (v128.load (local.get $x)))
        (local.set $b (v128.load offset=16 (local.get $x)))
        (local.set $x (i32.add (local.get $x) (i32.const 32)))
        (local.set $end (i32.add (local.get $sum) (local.get $span)))
        (loop $each
          (local.set $other (i32.add (local.get $sum) (local.get $span)))
          (local.set $value (v128.load (local.get $sum)))
          (v128.store (local.get $sum) (f32x4.add (local.get $value) (local.get $a)))
          (v128.store (local.get $other) (f32x4.sub (local.get $value) (local.get $a)))
          (local.set $value (v128.load offset=16 (local.get $sum)))
          (v128.store offset=16 (local.get $sum) (f32x4.add (local.get $value) (local.get $b)))
          (v128.store offset=16 (local.get $other) (f32x4.sub (local.get $value) (local.get $b)))
          (br_if $each (i32.lt_u (local.tee $sum (i32.add (local.get $sum) (i32.const 32))) (local.get $end))))
        (local.set $sum (i32.sub (local.get $end) (local.get $span)))
        (br_if $input (i32.lt_u (local.tee $span (i32.shl (local.get $span) (i32.const 1))) (i32.const 8192))))
      (br_if $group (i32.lt_u (local.tee $sum (i32.add (local.get $sum) (i32.const 8192))) (local.get $line))))
    ;; The outputs: a sum of each group, by the byte of its signs.
    (local.set $line (i32.shl (local.get $outputs) (i32.const 2)))
    (loop $output
      (local.set $a (v128.const f32x4 0 0 0 0))
      (local.set $b (v128.const f32x4 0 0 0 0))
      (local.set $sum (local.get $sums))
      (local.set $end (i32.add (local.get $bits) (local.get $groups)))
      (loop $group
        (local.set $other (i32.add (local.get $sum) (i32.shl (i32.load8_u (local.get $bits)) (i32.const 5))))
        (local.set $a (f32x4.add (local.get $a) (v128.load (local.get $other))))
        (local.set $b (f32x4.add (local.get $b) (v128.load offset=16 (local.get $other))))
        (local.set $sum (i32.add (local.get $sum) (i32.const 8192)))
        (br_if $group (i32.lt_u (local.tee $bits (i32.add (local.get $bits) (i32.const 1))) (local.get $end))))
      (v128.store32_lane 0 (local.tee $other (local.get $y)) (local.get $a))
      (v128.store32_lane 1 (local.tee $other (i32.add (local.get $other) (local.get $line))) (local.get $a))
      (v128.store32_lane 2 (local.tee $other (i32.add (local.get $other) (local.get $line))) (local.get $a))
      (v128.store32_lane 3 (local.tee $other (i32.add (local.get $other) (local.get $line))) (local.get $a))
      (v128.store32_lane 0 (local.tee $other (i32.add (local.get $other) (local.get $line))) (local.get $b))
      (v128.store32_lane 1 (local.tee $other (i32.add (local.get $other) (local.get $line))) (local.get $b))
      (v128.store32_lane 2 (local.tee $other (i32.add (local.get $other) (local.get $line))) (local.get $b))
      (v128.store32_lane 3 (local.tee $other (i32.add (local.get $other) (local.get $line))) (local.get $b))
      (local.set $y (i32.add (local.get $y) (i32.const 4)))
      (br_if $output (local.tee $outputs (i32.sub (local.get $outputs) (i32.const 1))))))

  ;; The largest of `count` numbers, a multiple of 4, as far as they are numbers.
  (func (export "most") (param $x i32) (param $count i32) (result f32)
    (local $end i32) (local $most v128)
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $count) (i32.const 2))))
    (local.set $most (v128.load (local.get $x)))
    (loop $four
      (local.set $most (f32x4.pmax (local.get $most) (v128.load (local.get $x))))
      (br_if $four (i32.lt_u (local.tee $x (i32.add (local.get $x) (i32.const 16))) (local.get $end))))
    (f32.max
      (f32.max (f32x4.extract_lane 0 (local.get $most)) (f32x4.extract_lane 1 (local.get $most)))
      (f32.max (f32x4.extract_lane 2 (local.get $most)) (f32x4.extract_lane 3 (local.get $most)))))

  ;; Σ exp(x - most) of `count` numbers, a multiple of 4, none of which is larger than `most`.
  ;; exp(z) = 2^n exp(r) with |r| at most ln(2) / 2, and exp(r) by the polynomial of Cephes' expf.
  (func (export "exponentials") (param $x i32) (param $count i32) (param $most f32) (result f64)
    (local $end i32) (local $largest v128) (local $z v128) (local $n v128) (local $sum v128)
    (local.set $end (i32.add (local.get $x) (i32.shl (local.get $count) (i32.const 2))))
    (local.set $largest (f32x4.splat (local.get $most)))
    (loop $four
      (local.set $z (f32x4.max (f32x4.sub (v128.load (local.get $x)) (local.get $largest)) (f32x4.splat (f32.const -87))))
      (local.set $n (f32x4.nearest (f32x4.mul (local.get $z) (f32x4.splat (f32.const 1.44269504)))))
      (local.set $z (f32x4.sub (local.get $z) (f32x4.mul (local.get $n) (f32x4.splat (f32.const 0.693359375)))))
      (local.set $z (f32x4.add (local.get $z) (f32x4.mul (local.get $n) (f32x4.splat (f32.const 2.12194440e-4)))))
      (local.set $z (f32x4.mul
        (call $power (local.get $z))
        (i32x4.shl (i32x4.add (i32x4.trunc_sat_f32x4_s (local.get $n)) (v128.const i32x4 127 127 127 127)) (i32.const 23))))
      (local.set $sum (f64x2.add (local.get $sum) (f64x2.promote_low_f32x4 (local.get $z))))
      (local.set $sum (f64x2.add
        (local.get $sum)
        (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15 (local.get $z) (local.get $z)))))
      (br_if $four (i32.lt_u (local.tee $x (i32.add (local.get $x) (i32.const 16))) (local.get $end))))
    (f64.add (f64x2.extract_lane 0 (local.get $sum)) (f64x2.extract_lane 1 (local.get $sum))))

  ;; exp(r) for |r| at most ln(2) / 2.
  (func $power (param $r v128) (result v128)
    (local $p v128)
    (local.set $p (f32x4.add (f32x4.mul (local.get $r) (f32x4.splat (f32.const 1.9875691500e-4))) (f32x4.splat (f32.const 1.3981999507e-3))))
    (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $r)) (f32x4.splat (f32.const 8.3334519073e-3))))
    (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $r)) (f32x4.splat (f32.const 4.1665795894e-2))))
    (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $r)) (f32x4.splat (f32.const 1.6666665459e-1))))
    (local.set $p (f32x4.add (f32x4.mul (local.get $p) (local.get $r)) (f32x4.splat (f32.const 5.0000001201e-1))))
    (f32x4.add
      (f32x4.mul (f32x4.mul (local.get $p) (local.get $r)) (local.get $r))
      (f32x4.add (local.get $r) (f32x4.splat (f32.const 1))))))
