# Builds only the parts of FAISS that tidemill uses: flat indexes, the scalar quantiser, k-means and bitmap selectors.
# In: the environment variable CMAKE_TOOLCHAIN_FILE (`config.toml`); CMake reads this file before FAISS's own.
# Out: the same static libraries with about a third of their sources, and no demos, benchmarks or tutorials.
# A source that is missing here shows as an undefined symbol when a program is linked; add its name then.

set(FAISS_ENABLE_EXTRAS OFF)
set(CMAKE_PROJECT_faiss_INCLUDE ${CMAKE_CURRENT_LIST_FILE})

if(PROJECT_NAME STREQUAL faiss AND NOT COMMAND keep_used_sources)
  set(USED_FAISS
    Clustering Index IndexFlat IndexFlatCodes IndexIVF IndexScalarQuantizer VectorTransform
    impl/AuxIndexStructures impl/CodePacker impl/FaissException impl/IDSelector impl/ScalarQuantizer impl/kmeans1d
    invlists/DirectMap invlists/InvertedLists
    utils/Heap utils/distances utils/distances_simd utils/extra_distances utils/hamming utils/partitioning
    utils/random utils/sorting utils/utils
    utils/distances_fused/avx512 utils/distances_fused/distances_fused utils/distances_fused/simdlib_based)
  set(USED_C_API
    Clustering_c IndexFlat_c IndexScalarQuantizer_c Index_c error_impl impl/AuxIndexStructures_c)

  function(keep_used_sources target)
    get_target_property(sources ${target} SOURCES)
    set(kept)
    foreach(name IN LISTS ARGN)
      if(NOT "${name}.cpp" IN_LIST sources)
        message(FATAL_ERROR "${target} has no source ${name}.cpp; correct the list in ${CMAKE_CURRENT_FUNCTION_LIST_FILE}")
      endif()
      list(APPEND kept ${name}.cpp)
    endforeach()
    set_property(TARGET ${target} PROPERTY SOURCES ${kept})
  endfunction()

  # Behind FAISS's own lists of sources: a deferred call runs at the end of its top directory.
  cmake_language(DEFER CALL keep_used_sources faiss ${USED_FAISS})
  cmake_language(DEFER CALL keep_used_sources faiss_c ${USED_C_API})
endif()
