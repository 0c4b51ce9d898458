// Importance matrices: how much each column of each weight matrix matters, from the inputs a text gave it.
//
//   y = W x,   an error ΔW costs Σ_tokens ‖ΔW x‖² ≈ Σ_rows Σ_c ΔW[r, c]² · Σ_tokens x_c²
//
// so that Σ x_c² is the weight a column's squared error should have when scales and codes are chosen.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace liuli {

struct ImportanceMatrix {
  /// One tensor. A stack of experts has sums and a count of its own per expert.
  struct Entry {
    std::vector<float> sums;    ///< [n_matrices, columns]: Σ x² over tokens
    std::vector<float> counts;  ///< [n_matrices]: tokens summed
    /// Mean squares [n_matrices, columns]; all ones for a matrix no token reached.
    std::vector<float> means() const;
  };
  std::map<std::string, Entry> entries;  ///< by tensor name
  std::vector<std::string> datasets;
  int64_t chunk_count = 0, chunk_size = 0;
};

/// The GGUF form: general.type "imatrix", imatrix.datasets, .chunk_count, .chunk_size; per tensor NAME.in_sum2
/// [n_matrices, columns] and NAME.counts [n_matrices, 1], all F32. Other tools write and read the same.
/// Errors: those of reading; corrupt_file (sums without counts, shapes that disagree, values that are negative or not
/// finite, no entry at all), invalid_argument (a GGUF file that is no importance matrix).
ImportanceMatrix read_imatrix(const std::string& path);
/// Errors: invalid_argument (no entries), io_error.
void write_imatrix(const std::string& path, const ImportanceMatrix& matrix);

}  // namespace liuli
