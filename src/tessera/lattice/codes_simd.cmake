# The kernels of codes, once per instruction set; code_kernels.cpp chooses at run time. All give
# equal bits: integers are exact, and contraction is off.
set(codes_options -O3 -fno-math-errno -fno-trapping-math -fwrapv -Wno-psabi -ffp-contract=off)
set(codes_options_baseline "")
set(codes_options_avx2 -mavx2 -mfma)
set(codes_options_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma
                         -mprefer-vector-width=512)
set(codes_options_amx ${codes_options_avx512} -mamx-tile -mamx-int8)
set(codes_options_dotprod -march=armv8.2-a+dotprod)
set(codes_isas baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  list(APPEND codes_isas avx2 avx512 amx)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  list(APPEND codes_isas dotprod)
endif()
set(codes_targets "")
foreach(isa IN LISTS codes_isas)
  tessera_variant(lattice codes_${isa} SOURCES simd/codes.cpp
    OPTIONS ${codes_options} ${codes_options_${isa}} DEFINITIONS TESSERA_SIMD_NAME=${isa})
  list(APPEND codes_targets tessera_lattice_codes_${isa})
endforeach()

tessera_check_linkage(codes_linkage ${codes_targets})
