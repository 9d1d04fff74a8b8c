# The loops of the nearest-anchor search, once per instruction set; nearest_kernels.cpp chooses at
# run time. Distances must be equal bits everywhere, so contraction is off there; scores only narrow
# down the candidates and use fused multiply-adds.
set(anchor_options -O3 -fno-math-errno -fno-trapping-math -Wno-psabi)
set(anchor_isa_baseline "")
set(anchor_isa_avx2 -mavx2 -mfma)
set(anchor_isa_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512)
set(anchor_isa_avx512bf16 ${anchor_isa_avx512} -mavx512bf16)
set(anchor_isa_amx ${anchor_isa_avx512bf16} -mamx-tile -mamx-bf16)
set(anchor_isas baseline)
set(anchor_bf16_isas "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  list(APPEND anchor_isas avx2 avx512)
  set(anchor_bf16_isas avx512bf16 amx)
endif()

set(anchor_targets "")
foreach(isa IN LISTS anchor_isas)
  tessera_variant(lattice distance_${isa} SOURCES simd/distance.cpp
    OPTIONS ${anchor_options} -ffp-contract=off ${anchor_isa_${isa}}
    DEFINITIONS TESSERA_SIMD_NAME=${isa})
  tessera_variant(lattice nearest_${isa} SOURCES simd/nearest.cpp
    OPTIONS ${anchor_options} -ffp-contract=fast ${anchor_isa_${isa}}
    DEFINITIONS TESSERA_SIMD_NAME=${isa})
  list(APPEND anchor_targets tessera_lattice_distance_${isa} tessera_lattice_nearest_${isa})
endforeach()
foreach(isa IN LISTS anchor_bf16_isas)
  tessera_variant(lattice nearest_${isa} SOURCES simd/nearest_bf16.cpp
    OPTIONS ${anchor_options} -ffp-contract=fast ${anchor_isa_${isa}}
    DEFINITIONS TESSERA_SIMD_NAME=${isa})
  list(APPEND anchor_targets tessera_lattice_nearest_${isa})
endforeach()

tessera_check_linkage(anchor_linkage ${anchor_targets})
