// SPDX-License-Identifier: Apache-2.0
// Included out of habit: a kernel needs nothing of it.
#pragma once
