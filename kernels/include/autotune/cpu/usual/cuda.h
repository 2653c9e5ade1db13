// Included out of habit: a kernel needs nothing of it.
#pragma once
