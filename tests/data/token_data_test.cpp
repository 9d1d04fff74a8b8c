#include "tessera/data/token_data.h"

#include <gtest/gtest.h>

#include <cstring>

#include "io/temp_folder.h"
#include "support/expect_error.h"
#include "tessera/data/text_files.h"

namespace tessera {
namespace {

using Tokens = std::vector<int32_t>;

Tokens all(const TokenData& data) {
  Tokens tokens(size_t(data.size()));
  data.read(0, tokens);
  return tokens;
}

void write_tokens(const std::filesystem::path& path, ShardFormat format, const Tokens& tokens) {
  TokenWriter writer(path, format);
  writer.write(tokens);
  writer.finish();
}

// The bytes of integers as they lie in a file.
template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), sizeof(T) * values.size()};
}

std::string llmc_header(int32_t version, int32_t count) {
  std::vector<int32_t> header(256);
  header[0] = 20240520;
  header[1] = version;
  header[2] = count;
  return raw(header);
}

TEST(TokenData, ReadsTheTwoFormats) {
  const TempFolder folder;
  const std::string tokens = raw(std::vector<uint16_t>{1, 50256, 65535});
  write_text(folder / "nano.bin", tokens);
  write_text(folder / "llmc.bin", llmc_header(1, 3) + tokens);
  for (const char* name : {"nano.bin", "llmc.bin"}) {
    EXPECT_EQ(all(TokenData::open({folder / name})), (Tokens{1, 50256, 65535})) << name;
  }
}

TEST(TokenData, WiderTokensAreRefused) {
  const TempFolder folder;
  write_text(folder / "wide.bin", raw(std::vector<int32_t>{20240801, 1, 0, 0}));
  EXPECT_NE(error_text([&] {
              TokenData::open({folder / "wide.bin"});
            }).find("wide.bin': byte 0: its tokens have 32 bits (magic 20240801), 16 are expected"),
            std::string::npos);
}

TEST(TokenData, IsWrittenByteForByte) {
  const TempFolder folder;
  write_tokens(folder / "nano.bin", ShardFormat::nanogpt, {1, 65535});
  write_tokens(folder / "llmc.bin", ShardFormat::llmc, {1, 65535});
  const std::string tokens = raw(std::vector<uint16_t>{1, 65535});
  EXPECT_EQ(read_text(folder / "nano.bin"), tokens);
  EXPECT_EQ(read_text(folder / "llmc.bin"), llmc_header(1, 2) + tokens);
  { TokenWriter(folder / "never.bin").write(Tokens{1}); }
  EXPECT_FALSE(std::filesystem::exists(folder / "never.bin")) << "finish() was not called";
}

TEST(TokenData, JoinsFiles) {
  const TempFolder folder;
  write_tokens(folder / "a.bin", ShardFormat::llmc, {0, 1, 2});
  write_tokens(folder / "b.bin", ShardFormat::nanogpt, {});
  write_tokens(folder / "c.bin", ShardFormat::nanogpt, {3});
  write_tokens(folder / "d.bin", ShardFormat::nanogpt, {4, 5, 6});
  const TokenData data =
      TokenData::open({folder / "a.bin", folder / "b.bin", folder / "c.bin", folder / "d.bin"});
  ASSERT_EQ(data.size(), 7);
  for (int64_t begin = 0; begin <= 7; ++begin) {
    for (int64_t end = begin; end <= 7; ++end) {
      Tokens got(size_t(end - begin)), expected;
      for (int64_t i = begin; i < end; ++i) expected.push_back(int32_t(i));
      data.read(begin, got);
      EXPECT_EQ(got, expected);
    }
  }
}

TEST(TokenData, IsSplitWithoutLoss) {
  const TokenData data = TokenData::of(Tokens{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const auto [train, held_out] = data.split(0.2);
  EXPECT_EQ(all(train), (Tokens{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(all(held_out), (Tokens{9, 10}));
  EXPECT_EQ(all(train.split(0.5).second), (Tokens{5, 6, 7, 8}));
  EXPECT_EQ(data.split(0).second.size(), 0);
  EXPECT_EQ(error_text([&] { data.split(1); }),
            "split: expected a share of 0 to below 1 to hold out, got 1");
}

TEST(TokenData, ErrorsNameTheFileAndTheByte) {
  const TempFolder folder;
  const auto refusal = [&](const std::string& content) {
    const std::string path = (folder / "x.bin").native();
    write_text(path, content);
    const std::string text = error_text([&] { TokenData::open({path}); });
    const std::string start = "tokens: '" + path + "': ";
    EXPECT_TRUE(text.starts_with(start)) << text;
    return text.substr(std::min(start.size(), text.size()));
  };
  EXPECT_EQ(refusal("abc"), "byte 2: expected tokens of 2 bytes, got one byte at the end");
  EXPECT_EQ(refusal(llmc_header(1, 0).substr(0, 100)),
            "byte 100: expected a header of 1024 bytes, got the end");
  EXPECT_EQ(refusal(llmc_header(2, 0)), "byte 4: expected version 1, got 2");
  for (const int32_t count : {-1, 0, 2, 0x7FFFFFFF}) {
    EXPECT_EQ(refusal(llmc_header(1, count) + "ab"),
              "byte 8: expected the number of tokens in a file of 1026 bytes, got " +
                  std::to_string(count));
  }
  EXPECT_EQ(error_text([] { TokenData::open({}); }),
            "tokens: expected at least one file, got none");
}

TEST(TokenData, RefusesTokensThatCannotBe) {
  const TempFolder folder;
  write_tokens(folder / "a.bin", ShardFormat::llmc, {0, 1, 2});
  write_tokens(folder / "b.bin", ShardFormat::llmc, {3, 9, 4});
  const TokenData data = TokenData::open({folder / "a.bin", folder / "b.bin"}, 9);
  Tokens got(4);
  data.read(0, got);
  EXPECT_EQ(
      error_text([&] { data.read(1, got); }),
      "tokens: '" + (folder / "b.bin").native() + "': byte 1026: expected a token below 9, got 9");
  EXPECT_EQ(error_text([] { TokenData::of(Tokens{65536}); }),
            "tokens: expected tokens of 16 bits, 0 to 65535, got 65536");
  TokenWriter writer(folder / "c.bin");
  EXPECT_EQ(error_text([&] {
              writer.write(Tokens{1, -1});
            }),
            "tokens: expected tokens of 16 bits, 0 to 65535, got -1");
  TokenWriter small(folder / "d.bin", ShardFormat::llmc, 3);
  small.write(Tokens{1, 2, 3});
  EXPECT_EQ(error_text([&] { small.write(Tokens{4}); }),
            "tokens: expected at most 3 tokens in one file of llm.c's, got 4");
}

TEST(TextFiles, AreReadDocumentByDocument) {
  const TempFolder folder;
  write_text(folder / "a.txt", "one\ntwo\n");
  write_text(folder / "b.jsonl",
             "{\"id\": 1, \"text\": \"thr\\u00e9e\"}\n\n{\"text\": \"\"}\r\n{\"text\": \"four\"}");
  write_text(folder / "empty.txt", "");
  std::vector<std::string> documents;
  for_each_document({folder / "a.txt", folder / "b.jsonl", folder / "empty.txt"},
                    [&](std::string_view document) { documents.emplace_back(document); });
  EXPECT_EQ(documents, (std::vector<std::string>{"one\ntwo\n", "thrée", "", "four", ""}));
  write_text(folder / "c.jsonl", "{\"content\": \"x\"}\n");
  documents.clear();
  for_each_document(
      {folder / "c.jsonl"}, [&](std::string_view document) { documents.emplace_back(document); },
      "content");
  EXPECT_EQ(documents, std::vector<std::string>{"x"});
}

TEST(TextFiles, BecomeTokens) {
  const TempFolder folder;
  write_text(folder / "a.txt", "ab");
  write_text(folder / "b.jsonl", "{\"text\": \"c\"}\n{\"text\": \"d\"}\n");
  const auto tokens_with = [&](std::string_view end) {
    Tokens tokens;
    tokenize_files({folder / "a.txt", folder / "b.jsonl"}, byte_tokenizer({"<e>"}), end,
                   [&](std::span<const int32_t> some) {
                     tokens.insert(tokens.end(), some.begin(), some.end());
                   });
    return tokens;
  };
  EXPECT_EQ(tokens_with("<e>"), (Tokens{'a', 'b', 256, 'c', 256, 'd', 256}));
  EXPECT_EQ(tokens_with(""), (Tokens{'a', 'b', 'c', 'd'}));
}

TEST(TextFiles, ErrorsNameTheLine) {
  const TempFolder folder;
  const std::string path = (folder / "a.jsonl").native();
  const auto refusal = [&](std::string_view text) {
    write_text(path, text);
    return error_text([&] { for_each_document({path}, [](std::string_view) {}); });
  };
  EXPECT_EQ(refusal("{\"text\": \"a\"}\n{\"text\": 3}\n"),
            "jsonl: '" + path + "': line 2 at byte 14: expected a text \"text\", got the number 3");
  EXPECT_TRUE(refusal("\n{]\n").starts_with("jsonl: '" + path + "': line 2 at byte 1: byte 1: "));
}

}  // namespace
}  // namespace tessera
