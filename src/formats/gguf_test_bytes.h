// Builds GGUF bytes for tests, valid or broken in one place: nothing here checks anything.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "formats/mapped_file.h"

namespace liuli::testing_gguf {

/// Little-endian bytes appended one field after another.
class Bytes {
 public:
  template <class T>
  Bytes& put(T value) {
    const auto* p = reinterpret_cast<const char*>(&value);
    data_.append(p, sizeof value);
    return *this;
  }
  Bytes& raw(const std::string& bytes) {
    data_ += bytes;
    return *this;
  }
  Bytes& string(const std::string& text) { return put<uint64_t>(text.size()).raw(text); }
  Bytes& pad(size_t alignment) {
    data_.append((alignment - data_.size() % alignment) % alignment, '\0');
    return *this;
  }
  const std::string& data() const { return data_; }

 private:
  std::string data_;
};

constexpr uint32_t kU8 = 0, kU16 = 2, kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9,
                   kU64 = 10;

/// A whole file; each part can be replaced by something wrong.
struct Builder {
  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t tensor_count = 0, kv_count = 0;  ///< counted by the functions below
  Bytes keys, infos;
  std::string data;
  size_t alignment = 32;

  Builder& key(const std::string& name, uint32_t type, const Bytes& value) {
    keys.string(name).put(type).raw(value.data());
    kv_count++;
    return *this;
  }
  Builder& u32(const std::string& name, uint32_t value) { return key(name, kU32, Bytes().put(value)); }
  Builder& text(const std::string& name, const std::string& value) {
    return key(name, kString, Bytes().string(value));
  }
  Builder& array(const std::string& name, uint32_t element, uint64_t count, const Bytes& values) {
    return key(name, kArray, Bytes().put(element).put(count).raw(values.data()));
  }
  /// Dimensions in file order: the contiguous one first.
  Builder& info(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
    infos.string(name).put(static_cast<uint32_t>(dims.size()));
    for (const uint64_t d : dims) infos.put(d);
    infos.put(type).put(offset);
    tensor_count++;
    return *this;
  }
  /// An F32 tensor of n values `first`, `first` + 1, … with its data.
  Builder& f32(const std::string& name, uint64_t n, float first) {
    info(name, {n}, 0, data.size());
    for (uint64_t i = 0; i < n; i++) {
      const float value = first + static_cast<float>(i);
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    data.append((alignment - data.size() % alignment) % alignment, '\0');
    return *this;
  }
  std::string build() const {
    Bytes file;
    file.raw(magic).put(version).put(tensor_count).put(kv_count).raw(keys.data()).raw(infos.data());
    if (tensor_count > 0) file.pad(alignment);
    return file.raw(data).data();
  }
};

inline FileBytes bytes_of(std::string data) {
  auto owner = std::make_shared<const std::string>(std::move(data));
  return {reinterpret_cast<const uint8_t*>(owner->data()), owner->size(), owner};
}

}  // namespace liuli::testing_gguf
