# cmake -DNPM= -DWEB= -DSTAMP= -P packages.cmake: installs what package-lock.json names, unless
# another build folder just did.
file(LOCK ${WEB}/node_modules.lock TIMEOUT 300)
if(EXISTS ${STAMP}
    AND NOT ${WEB}/package-lock.json IS_NEWER_THAN ${STAMP}
    AND NOT ${WEB}/package.json IS_NEWER_THAN ${STAMP})
  file(TOUCH ${STAMP})
  return()
endif()
execute_process(COMMAND ${NPM} ci --no-progress
  WORKING_DIRECTORY ${WEB} RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "web: npm ci failed (${code}):\n${said}")
endif()
file(TOUCH ${STAMP})
