/* Include first: keeps a b - c d two rounded products in this file. Fused into one multiply-add, the
 * imaginary part of z conj(z) would not be 0, and results would differ from CPU to CPU. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif
