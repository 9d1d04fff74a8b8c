// A Var that was assigned another one's value as it stands: no expression lies between the two.
#include <gtest/gtest.h>

#include "tessera/tessera.h"

namespace tessera {
namespace {

TEST(AssignedHandle, BothVarsOfASwapCanBeReadAtOnce) {
  const Var a(scalar(1.0)), b(scalar(2.0));
  const Tensor old = a;
  a.assign(b);
  b.assign(old);
  EXPECT_EQ(a.value().item(), 2);
  EXPECT_EQ(b.value().item(), 1);
}

// One kernel reads both Vars for the sum, and writes both.
TEST(AssignedHandle, ASwapInOneKernelLosesNothing) {
  const Var a(tensor(std::vector{1.0, 2.0})), b(tensor(std::vector{3.0, 4.0}));
  const auto swap = compile([&]() {
    const Tensor old = a;
    const Tensor both = old + b;
    a.assign(b);
    b.assign(old);
    return both;
  });
  EXPECT_EQ(swap().to_vector<double>(), (std::vector{4.0, 6.0}));
  EXPECT_EQ(a.value().to_vector<double>(), (std::vector{3.0, 4.0}));
  EXPECT_EQ(b.value().to_vector<double>(), (std::vector{1.0, 2.0}));
}

TEST(AssignedHandle, AHandleTakenBeforeTheFlushStaysReadable) {
  const Var a(scalar(1.0)), b(scalar(2.0));
  a.assign(b);
  b.assign(b.value() + 1);
  const Tensor now = a;
  flush();
  EXPECT_EQ(now.item(), 2);
}

TEST(AssignedHandle, ACompiledFunctionDoesNotBindWhatWasComputedFromAVarBefore) {
  const Var a(scalar(1.0)), b(scalar(3.0));
  const Tensor before = -b.value();
  const Tensor user = before + 1;
  a.assign(before);
  flush();
  const auto negated = compile([&]() { return -b.value(); });
  EXPECT_EQ(negated().item(), -3);
  a.set(100.0);
  EXPECT_EQ(negated().item(), -3);
  b.set(5.0);
  EXPECT_EQ(negated().item(), -5);
}

TEST(AssignedHandle, AVarCanBeAssignedItself) {
  const Var a(scalar(1.0));
  a.assign(a);
  EXPECT_EQ(a.value().item(), 1);
}

// The value of x lies in the storage of a, which the same flush replaces.
TEST(AssignedHandle, AReadOfStorageComesBeforeItsReplacement) {
  const Var a(scalar(1.0), "a"), b(scalar(3.0), "b"), c(scalar(0.0), "c");
  const Tensor x = -b.value();
  a.assign(x);
  flush();
  const Tensor y = x * 10.0;
  a.assign(b.value() * 7.0);
  c.assign(y);
  keep_readable(y);
  flush();
  EXPECT_EQ(y.item(), -30);
  EXPECT_EQ(c.value().item(), -30);
  EXPECT_EQ(a.value().item(), 21);
  const Tensor z = b.value() * -2.0;
  a.assign(z);
  flush();
  a.assign(a.value() + 5.0);
  c.assign(z);
  flush();
  EXPECT_EQ(c.value().item(), -6);
  EXPECT_EQ(a.value().item(), -1);
}

// The second assign writes the first, and with it b; what it reads of the old b is computed before.
TEST(AssignedHandle, ASecondAssignMayReadWhatTheFirstFlushReplaces) {
  const Var a(scalar(1.0), "a"), b(scalar(3.0), "b");
  const Tensor old = b;
  b.assign(b.value() + 1.0);
  a.assign(a.value() * 2.0);
  a.assign(old * 10.0);
  EXPECT_EQ(a.value().item(), 30);
  EXPECT_EQ(b.value().item(), 4);
}

}  // namespace
}  // namespace tessera
