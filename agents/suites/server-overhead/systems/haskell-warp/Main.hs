{-# LANGUAGE ForeignFunctionInterface #-}
{-# LANGUAGE OverloadedStrings #-}

-- | Answers /hello, /burn, /sleep and /mb with warp: server BIND PORT.
module Main (main) where

import Control.Concurrent (threadDelay, yield)
import Control.Monad (forM_, replicateM_, when)
import qualified Data.ByteString.Lazy.Char8 as Lazy
import Data.Int (Int64)
import Data.String (fromString)
import Foreign.C.Types (CInt (..))
import Foreign.Marshal.Array (allocaArray, peekArray)
import Foreign.Ptr (Ptr)
import GHC.Clock (getMonotonicTimeNSec)
import Network.HTTP.Types (Status, hContentType, ok200, status404)
import Network.Wai (Application, Response, pathInfo, responseLBS)
import Network.Wai.Handler.Warp (defaultSettings, runSettings, setHost, setPort)
import System.Environment (getArgs)

foreign import ccall unsafe "time.h clock_gettime"
  clockGettime :: CInt -> Ptr Int64 -> IO CInt

main :: IO ()
main = do
  [bind, port] <- getArgs
  runSettings (setHost (fromString bind) (setPort (read port) defaultSettings)) answer

answer :: Application
answer request respond = case pathInfo request of
  ["hello"] -> respond (text ok200 "Hello, World!")
  ["burn"] -> burn >> respond (text ok200 "burned")
  ["sleep"] -> sleep >> respond (text ok200 "slept")
  ["mb"] -> respond (text ok200 megabyte)
  _ -> respond (text status404 "not here")

text :: Status -> Lazy.ByteString -> Response
text status body =
  responseLBS status [(hContentType, "text/plain"), ("Content-Length", size)] body
  where
    size = fromString (show (Lazy.length body))

megabyte :: Lazy.ByteString
megabyte = Lazy.replicate 1000000 'x'

steps :: Int
steps = 20

-- | Nanoseconds.
step :: Int64
step = 7500000 `div` fromIntegral steps

-- | Uses 7.5 ms of its thread's CPU time; other requests run between the steps.
burn :: IO ()
burn = replicateM_ steps $ do
  start <- threadCpu
  spinUntil (start + step)
  yield

spinUntil :: Int64 -> IO ()
spinUntil end = do
  now <- threadCpu
  when (now < end) (spinUntil end)

-- | Ends each step on time, so that late ones do not add up.
sleep :: IO ()
sleep = do
  start <- now
  forM_ [1 .. fromIntegral steps] $ \done -> do
    passed <- subtract start <$> now
    let left = done * step - passed
    when (left > 0) (threadDelay (fromIntegral ((left + 999) `div` 1000)))
  where
    now = fromIntegral <$> getMonotonicTimeNSec

-- | Nanoseconds: CLOCK_THREAD_CPUTIME_ID of time.h is 3.
threadCpu :: IO Int64
threadCpu = allocaArray 2 $ \time -> do
  _ <- clockGettime 3 time
  parts <- peekArray 2 time
  pure (sum (zipWith (*) [1000000000, 1] parts))
