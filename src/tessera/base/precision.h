#pragma once

namespace tessera {

// Whether matrix products of f32 may round their operands to 10 bits (TF32) on devices with units
// for that. Holds for what is compiled from now on, in the whole process; false unless the variable
// TESSERA_TF32 is 1.
bool allows_tf32();
bool set_tf32(bool allowed);  // returns what held before

}  // namespace tessera
